package resp

import (
	"context"
	"time"

	"celld/resp/session"
	"celld/store"
)

// What the JSON of the HTTP port needs of the server.

// Taken is a CL.TAKE or CL.MTAKE that is decided.
type Taken struct {
	Check
	Reset   time.Duration // until all limits are full again
	Granted int64
	Wait    time.Duration // until the call may go ahead
	Lease   int64         // 0: none
}

// TooManyWait is the error of a call that may not wait, as too many do.
const TooManyWait = session.ErrMaxWaiters

// Do runs commands as those of a client at an address, who may do everything: see session.Service.Do. taken gets each take that is decided,
// whose Limits are valid until it returns.
func (srv *Server) Do(ctx context.Context, from string, commands, replies []byte, taken func(*Taken)) ([]byte, error) {
	if taken == nil {
		return srv.sessions.Do(ctx, from, commands, replies, nil)
	}
	var t Taken
	return srv.sessions.Do(ctx, from, commands, replies, func(r *store.TakeRequest) {
		t = Taken{Check: checkOf(r, t.Limits[:0]), Reset: fromNS(r.Taken.ResetAfterNS), Granted: r.Taken.Granted}
		if r.Terms != nil {
			t.Wait, t.Lease = fromNS(r.Terms.WaitNS), r.Terms.Lease
		}
		taken(&t)
	})
}

// Misread is the error of a CL.TAKE or CL.MTAKE that is not well formed, or nil. It is a *CallError. Nothing is decided.
func (srv *Server) Misread(args [][]byte) error {
	if text := srv.sessions.Misread(args); text != "" {
		return &CallError{Text: text}
	}
	return nil
}

// MaxWait is the longest that a call may wait (--wait-max).
func (srv *Server) MaxWait() time.Duration {
	return time.Duration(srv.sessions.Config.WaitMax.Get()) * time.Millisecond
}
