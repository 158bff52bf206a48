package resp

import (
	"bytes"
	"context"
	"fmt"
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

// Caller is whose commands Do runs: see session.Caller.
type Caller = session.Caller

// errNoToken is the error of a caller that is not trusted, where the user default needs a password.
var errNoToken error = &CallError{Text: "NOAUTH the user default needs a password: set --http-token-file, and send the token"}

// Do runs commands as those of a client: see session.Service.Do. taken gets each take that is decided, whose Limits are valid until it
// returns. The error of a caller that must authenticate is a *CallError.
func (srv *Server) Do(ctx context.Context, from Caller, commands, replies []byte, taken func(*Taken)) ([]byte, error) {
	var tell func(*store.TakeRequest)
	if taken != nil {
		var t Taken
		tell = func(r *store.TakeRequest) {
			t = Taken{Check: checkOf(r, t.Limits[:0]), Reset: fromNS(r.Taken.ResetAfterNS), Granted: r.Taken.Granted}
			if r.Terms != nil {
				t.Wait, t.Lease = fromNS(r.Terms.WaitNS), r.Terms.Lease
			}
			taken(&t)
		}
	}
	mark := len(replies)
	replies, err := srv.sessions.Do(ctx, from, commands, replies, tell)
	if err == nil && bytes.HasPrefix(replies[mark:], []byte("-NOAUTH ")) {
		err = errNoToken
	}
	return replies, err
}

// Refused is why a caller that is not trusted may not run a command, whatever its keys; nil: it may. It is a *CallError.
func (srv *Server) Refused(command string) error {
	users := srv.sessions.Users
	switch {
	case !users.Open():
		return errNoToken
	case !users.Default.Rights().MayRun(srv.sessions.Commands.Find([]byte(command)).ACL, nil):
		return &CallError{Text: fmt.Sprintf(session.ErrNoPermCommand, command)}
	}
	return nil
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
