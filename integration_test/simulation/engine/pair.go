package engine

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pair returns the ends of a connection that holds whatever is written until it is read.
func pair(addr string) (client, server net.Conn) {
	a, b := newStream(), newStream()
	return &end{in: a, out: b, addr: addr}, &end{in: b, out: a, addr: addr}
}

// stream is one direction.
type stream struct {
	mu       sync.Mutex
	buffer   bytes.Buffer
	closed   bool
	deadline time.Time
	timer    *time.Timer
	changed  chan struct{} // closed at each change
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

func (s *stream) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		n, _ := s.buffer.Read(p)
		closed, changed := s.closed, s.changed
		late := !s.deadline.IsZero() && !time.Now().Before(s.deadline)
		s.mu.Unlock()
		switch {
		case late:
			return 0, os.ErrDeadlineExceeded
		case n > 0 || len(p) == 0:
			return n, nil
		case closed:
			return 0, io.EOF
		}
		<-changed
	}
}

// end is one end of a connection.
type end struct {
	in, out *stream
	addr    string
	mine    bool // closed by this end
}

func (e *end) Read(p []byte) (int, error) {
	n, err := e.in.read(p)
	if err == io.EOF && e.isClosed() {
		err = net.ErrClosed
	}
	return n, err
}

func (e *end) isClosed() bool {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	return e.mine
}

func (e *end) Write(p []byte) (n int, err error) {
	e.out.change(func() {
		if e.out.closed {
			err = &net.OpError{Op: "write", Net: "simulated", Addr: e.RemoteAddr(), Err: syscall.EPIPE}
		} else {
			n, err = e.out.buffer.Write(p)
		}
	})
	return n, err
}

func (e *end) Close() error {
	e.in.change(func() { e.in.closed, e.mine = true, true })
	e.out.change(func() { e.out.closed = true })
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error {
	s := e.in
	s.change(func() {
		if s.timer != nil {
			s.timer.Stop()
		}
		if s.deadline = t; !t.IsZero() {
			s.timer = time.AfterFunc(time.Until(t), func() { s.change(func() {}) })
		}
	})
	return nil
}

func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil } // a write never waits
func (e *end) LocalAddr() net.Addr              { return address(e.addr) }
func (e *end) RemoteAddr() net.Addr             { return address(e.addr) }

type address string

func (address) Network() string  { return "simulated" }
func (a address) String() string { return string(a) }
