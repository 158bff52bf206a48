package resp

import (
	"errors"
	"strings"
	"sync"

	"celld/resp/wire"
)

// caller makes calls from within the process. It is the transport of a session without a connection, so a call is decided, counted,
// written to the disk and refused as a client's is. No client sees the session, and it counts in no limit of clients.
type caller struct {
	session *Session
	frame   []byte
	out     []byte
	woken   chan struct{}
}

func (c *caller) Send(p []byte) (pending int) { c.out = append(c.out, p...); return 0 }
func (c *caller) Close(bool)                  {}
func (c *caller) Pause(bool)                  {}
func (c *caller) Meanwhile(bool)              {}
func (c *caller) Resume()                     {}
func (c *caller) RoundNS() int64              { return 0 }

func (c *caller) Wake() {
	select {
	case c.woken <- struct{}{}:
	default: // it is awake
	}
}

// callers are those that make no call now.
type callers struct{ pool sync.Pool }

func (srv *service) newCaller() *caller {
	c := &caller{woken: make(chan struct{}, 1)}
	c.session = &Session{srv: srv}
	c.session.bound.bytes = &c.session.client.BoundBytes
	c.session.client.Conn = c
	c.session.become(srv.users.Inside())
	c.session.client.Begin("inside", "inside", srv.clock())
	return c
}

// CallError is the error that a call was answered with, such as "LOADING Redis is loading the dataset in memory".
type CallError struct{ Text string }

func (e *CallError) Error() string { return e.Text }

// Code is the error's first word.
func (e *CallError) Code() string {
	code, _, _ := strings.Cut(e.Text, " ")
	return code
}

// call makes a call without WAIT. It returns when the call is decided, and is on the disk where replies wait for that. With an engine
// that takes --store-timeout at most. The error is a *CallError. Any goroutine may call it.
func (srv *service) call(args ...string) (reply []byte, err error) {
	c, _ := srv.inside.pool.Get().(*caller)
	if c == nil {
		c = srv.newCaller()
	}
	c.out = c.out[:0]
	c.frame = wire.AppendCommand(c.frame[:0], args...)
	if srv.synchronous {
		srv.persist.Begin()
	}
	s := c.session
	s.Serve(c.frame)
	for s.waits != nil {
		<-c.woken
		s.Serve(nil)
	}
	reply = c.out
	switch {
	case !srv.synchronous:
	case s.Wrote():
		reply = s.Confirm(reply, srv.commit())
	default:
		srv.persist.Leave()
		reply = s.Confirm(reply, nil)
	}
	reply = append([]byte(nil), reply...)
	if s.end == open {
		srv.inside.pool.Put(c)
	}
	text := strings.TrimSuffix(string(reply), "\r\n")
	if why, failed := strings.CutPrefix(text, "-"); failed {
		return nil, &CallError{why}
	}
	if text == "" {
		return nil, errors.New("the call was not answered")
	}
	return reply, nil
}
