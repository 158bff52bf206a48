package resp

import (
	"bytes"
	"context"
	"errors"
	"time"

	"celld/resp/command/decide"
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

// Caller is whose commands Do runs: see session.Caller.
type Caller = session.Caller

// errNoToken is the error of a caller that is not trusted, where the user default needs a password.
var errNoToken error = &CallError{Text: "NOAUTH the user default needs a password: set --http-token-file, and send the token"}

// Ask is a CL.TAKE or CL.MTAKE of JSON, and Option an option of it.
type (
	Ask    = decide.Ask
	Option = decide.Option
)

// MisreadError is the error of an Ask that is not well formed: see session.MisreadError.
type MisreadError = session.MisreadError

// Take decides takes of a caller: see session.Service.Take. A Taken is valid until answer returns.
func (srv *Server) Take(ctx context.Context, from Caller, asks []Ask, answer func(t *Taken, err error)) error {
	var t Taken
	return withoutToken(srv.sessions.Take(ctx, from, asks, func(r *store.TakeRequest, err error) {
		if err != nil {
			answer(nil, err)
			return
		}
		t = Taken{Check: checkOf(r, t.Limits[:0]), Reset: fromNS(r.Taken.ResetAfterNS), Granted: r.Taken.Granted}
		if r.Terms != nil {
			t.Wait, t.Lease = fromNS(r.Terms.WaitNS), r.Terms.Lease
		}
		answer(&t, nil)
	}))
}

// Do runs commands as those of a client: see session.Service.Do. The error of a caller that must authenticate is a *CallError.
func (srv *Server) Do(ctx context.Context, from Caller, commands, replies []byte) ([]byte, error) {
	mark := len(replies)
	replies, err := srv.sessions.Do(ctx, from, commands, replies)
	if err == nil && bytes.HasPrefix(replies[mark:], []byte("-NOAUTH ")) {
		err = errNoToken
	}
	return replies, err
}

// withoutToken says to who must authenticate how that is done by HTTP.
func withoutToken(err error) error {
	if err == nil { // as nearly always, without looking for more
		return nil
	}
	if refused := (*CallError)(nil); errors.As(err, &refused) && refused.Code() == "NOAUTH" {
		return errNoToken
	}
	return err
}

// Refused is why a caller may not run a command, whatever its keys; nil: it may. It is a *CallError.
func (srv *Server) Refused(from Caller, name string) error {
	if refused := srv.sessions.Forbid(from, srv.sessions.Commands.Find([]byte(name))); refused != nil {
		return withoutToken(refused)
	}
	return nil
}

// MaxWait is the longest that a call may wait (--wait-max).
func (srv *Server) MaxWait() time.Duration {
	return time.Duration(srv.sessions.Config.WaitMax.Get()) * time.Millisecond
}
