package session

import (
	"context"

	"celld/resp/transport"
)

// Do runs commands one after the other as those of a client, and appends their replies in RESP3. commands are whole frames. Where replies
// wait for the disk, Do returns when what they tell is there; if the disk refuses it, the error is a *CallError. When ctx ends, the error
// is that of ctx. Any goroutine may call Do.
func (srv *Service) Do(ctx context.Context, from Caller, commands, replies []byte) ([]byte, error) {
	in, ok := srv.insides.Get().(*inside)
	if !ok {
		in = srv.newInside()
	}
	in.s.client.Addr, in.replies, in.refused = from.Addr, replies, nil
	if from.Trusted {
		in.s.become(srv.insider)
	} else {
		in.s.becomeNobody()
	}
	err := in.serve(ctx, commands)
	replies, in.replies = in.replies, nil
	if in.again() {
		srv.insides.Put(in)
	} else {
		in.s.ended()
	}
	return replies, err
}

// inside is a session within the process, and its transport.
type inside struct {
	s       *Session
	out     []byte // of the round, where replies wait for the disk
	replies []byte
	closed  bool
	refused error         // by the disk
	woken   chan struct{} // holds one
}

func (srv *Service) newInside() *inside {
	in := &inside{s: srv.newSession(), woken: make(chan struct{}, 1)}
	in.s.client.Begin("", "", srv.Clock())
	in.s.client.Conn = in
	in.s.client.RESP3.Store(true)
	return in
}

// again reports whether the session can go on with the commands of another.
func (t *inside) again() bool {
	return !t.closed && t.s.end == open && t.s.waits == nil && len(t.s.in) == 0
}

// serve serves commands until all are answered.
func (t *inside) serve(ctx context.Context, commands []byte) error {
	for data := commands; ; data = nil {
		more := t.round(data)
		if t.refused != nil || t.closed || t.s.waits == nil && !more {
			return t.refused
		}
		if more {
			continue
		}
		if err := t.await(ctx); err != nil {
			return err
		}
	}
}

// await returns when the session is woken, or the error of ctx when that ends.
func (t *inside) await(ctx context.Context) error {
	select {
	case <-t.woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// round serves the session, and confirms what it has replied.
func (t *inside) round(data []byte) (more bool) {
	s, srv := t.s, t.s.srv
	if !srv.Synchronous {
		return s.Serve(data)
	}
	srv.Persist.Begin()
	more = s.Serve(data)
	var err error
	if s.Wrote() {
		err = srv.commit()
	} else {
		srv.Persist.Leave()
	}
	t.replies = append(t.replies, s.Confirm(t.out, err)...)
	t.out = t.out[:0]
	if err != nil {
		t.refused = &CallError{formatError(ErrMisconf, err), err}
	}
	return more
}

func (t *inside) Send(p []byte) int {
	if t.s.srv.Synchronous {
		t.out = append(t.out, p...)
	} else {
		t.replies = append(t.replies, p...)
	}
	return 0
}

func (t *inside) Wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

func (t *inside) Close(bool)     { t.closed = true }
func (t *inside) Pause(bool)     {}
func (t *inside) Meanwhile(bool) {}
func (t *inside) Resume()        {}
func (t *inside) RoundNS() int64 { return 0 }

var _ transport.Conn = (*inside)(nil)
