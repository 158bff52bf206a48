package session

import (
	"context"
	"slices"

	"celld/resp/transport"
	"celld/store"
)

// Caller is whose commands Do runs.
type Caller struct {
	Addr    string // for MONITOR and logs
	Trusted bool   // it may do everything; else it is the user default, like a client that has not authenticated
}

// Do runs commands one after the other as those of a client, and appends their replies in RESP3. commands are whole frames. Calls that are
// gathered in a pipeline are decided together here, too. Where replies wait for the disk, Do returns when what they tell is there; if the
// disk refuses it, the error is a *CallError.
//
// taken gets each CL.TAKE and CL.MTAKE that is decided, in their order, and may read it until it returns: its reply in numbers says less.
//
// When ctx ends, who waits leaves the line, and what was granted meanwhile flows back: then the error is that of ctx. Any goroutine may
// call Do.
func (srv *Service) Do(ctx context.Context, from Caller, commands, replies []byte, taken func(*store.TakeRequest)) ([]byte, error) {
	in, ok := srv.insides.Get().(*inside)
	if !ok {
		in = srv.newInside()
	}
	in.s.client.Addr, in.replies, in.taken, in.refused = from.Addr, replies, taken, nil
	if from.Trusted {
		in.s.become(srv.insider)
	} else {
		in.s.becomeNobody()
	}
	err := in.serve(ctx, commands)
	replies, in.replies, in.taken = in.replies, nil, nil
	if in.again() {
		srv.insides.Put(in)
	} else {
		in.s.ended()
	}
	return replies, err
}

// Misread is the text of an error in the arguments of a CL.TAKE or CL.MTAKE, or "". It decides nothing.
func (srv *Service) Misread(args [][]byte) (text string) {
	limits := srv.frameLimits(true)
	switch text := srv.closed(srv.Commands.Find(args[0])); {
	case text != "": // while it loads, nobody knows which policies there are
		return text
	case len(args) > limits.MaxArgs, slices.ContainsFunc(args, func(arg []byte) bool { return len(arg) > limits.MaxBulk }):
		return errFrame
	}
	c := srv.scratches.get(&srv.deciding)
	defer srv.scratches.put(c)
	_, text = c.decider.ShapeOf(args)
	return text
}

// inside is a session within the process, and its transport.
type inside struct {
	s       *Session
	out     []byte // of the round, where replies wait for the disk
	replies []byte
	taken   func(*store.TakeRequest)
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
	srv, c := t.s.srv, &t.s.client
	srv.within.add(c)
	defer srv.within.remove(c)
	if srv.Stopping.refusing.Load() { // its look at those who wait may have been before
		c.Unblock(srv.Port, store.ErrRefused)
	}
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

// tell tells of takes that are decided.
func (t *inside) tell(takes []store.TakeRequest) {
	for i := 0; t.taken != nil && i < len(takes); i++ {
		if r := &takes[i]; r.Err == nil && r.Cost >= 0 {
			t.taken(r)
		}
	}
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
