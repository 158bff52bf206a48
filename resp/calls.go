package resp

import (
	"context"
	"errors"
	"time"

	"celld/resp/command/decide"
	"celld/resp/command/limit"
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

// Caller is who asks: see session.Caller.
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

// Throttled is the answer of a CL.THROTTLE.
type Throttled struct {
	Limited          bool
	Limit, Remaining int64
	Retry, Reset     int64 // s, as CL.THROTTLE rounds them; Retry is -1 for a call that never passes, or has passed
}

// Throttle decides a CL.THROTTLE with its numbers: max_burst, count, period and quantity. The error is a *CallError.
func (srv *Server) Throttle(from Caller, key string, numbers [4]int64) (t Throttled, err error) {
	r, err := srv.sessions.Throttle(from, key, numbers)
	t = Throttled{Limited: r.Decision.Limited, Limit: r.Decision.Limit, Remaining: r.Decision.Remaining}
	t.Retry, t.Reset = decide.Seconds(&r.Decision)
	return t, withoutToken(err)
}

// ChangeLease is CL.RENEW, CL.RELEASE or CL.SETTLE of a lease of a key, with the numbers that follow the key. It returns false where there
// is none. The error is a *CallError.
func (srv *Server) ChangeLease(from Caller, command, key string, numbers ...int64) (did bool, err error) {
	l := limit.LeaseChange{Command: command, Key: []byte(key), ID: numbers[0], N: numbers[len(numbers)-1]}
	err = srv.sessions.OnKey(from, command, key, numbers, func(keys store.Keys, a store.Access) (text string, err error) {
		if text = l.Check(); text == "" {
			did, err = l.Make(keys, a)
		}
		return text, err
	})
	return did, withoutToken(err)
}

// Show is CL.SHOW of a key. The error is a *CallError.
func (srv *Server) Show(from Caller, key string) (all []limit.Shown, err error) {
	err = srv.sessions.OnKey(from, "cl.show", key, nil, func(keys store.Keys, a store.Access) (text string, err error) {
		all, err = limit.Look(srv.sessions.Port, keys, []byte(key), a)
		return "", err
	})
	return all, withoutToken(err)
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
