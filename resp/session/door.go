package session

import (
	"context"
	"errors"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/command/spec"
	"celld/store"
)

// takeName is the command that calls from within are.
const takeName = "CL.TAKE"

// Caller is who asks without a connection of RESP.
type Caller struct {
	Addr    string // for MONITOR and logs
	Trusted bool   // it may do everything; else it is the user default, like a client that has not authenticated
}

// MisreadError is the error of a call that is not well formed.
type MisreadError struct {
	CallError
	Ask   int // which of several
	Limit int // which of its limits is wrong by itself; -1: none
}

func (e *MisreadError) Unwrap() error { return &e.CallError }

// Take decides takes one after the other, as a client's pipeline. If one is not well formed, it decides none: the error is a *MisreadError.
// answer is called for each, in their order, with the request or with its error, a *CallError. Any other error ends all: it is a *CallError
// too, or that of ctx. When ctx ends, who waits leaves the line, and what was granted meanwhile flows back. Any goroutine may call it.
func (srv *Service) Take(ctx context.Context, from Caller, asks []decide.Ask, answer func(r *store.TakeRequest, err error)) error {
	if refused := srv.refuseWithin(from, srv.rowOf(&asks[0])); refused != nil { // who learns nothing of policies
		return refused
	}
	c := srv.scratches.get(&srv.deciding)
	c.stats.Begin(srv.Clock())
	version := srv.Store.PoliciesVersion()
	requests, err := srv.read(c, asks)
	for len(requests) > 0 && err == nil {
		n := srv.together(from, asks, requests)
		if srv.Store.PoliciesVersion() != version { // a policy may have changed while one before waited
			n = 1
			r, _, text := c.decider.Read(&asks[0])
			if requests[0] = r; text != "" {
				answer(nil, srv.failed(c, srv.rowOf(&asks[0]), text, nil))
				requests, asks = requests[1:], asks[1:]
				continue
			}
		}
		some, refused := requests[:n], (*CallError)(nil)
		refused, err = srv.decide(c, from, &takes{srv, ctx, srv.rowOf(&asks[0]), some}, func() {
			c.decider.CountTaken(some, srv.limiter == store.Limiter(srv.Store))
		})
		for i := range some {
			switch r := &some[i]; {
			case err != nil:
			case refused != nil:
				answer(nil, refused)
			case r.Err != nil:
				answer(nil, srv.failed(c, srv.rowOf(&asks[i]), storeError(r.Err), r.Err))
			default:
				c.stats.Count(srv.rowOf(&asks[i]), 1, c.lane)
				answer(r, nil)
			}
		}
		srv.finish(c)
		requests, asks = requests[n:], asks[n:]
	}
	srv.finish(c)
	srv.giveUp(c, err)
	return err
}

// rowOf is the row of the command that asks the same.
func (srv *Service) rowOf(a *decide.Ask) *command.Row { return srv.Commands.Find([]byte(a.Command())) }

// together is how many of the first requests are decided at once: those of one command that neither wait nor hold leases. Of a user who may
// not do everything it is one, as each may be refused by itself.
func (srv *Service) together(from Caller, asks []decide.Ask, requests []store.TakeRequest) (n int) {
	if !from.Trusted && !srv.Users.Default.Rights().MayAll() {
		return 1
	}
	same := func(i int) bool { return requests[i].Terms == nil && asks[i].Command() == asks[0].Command() }
	for n = 1; same(0) && n < min(store.MaxTakes, len(requests)) && same(n); n++ { //nolint:revive // it counts
	}
	return n
}

// giveUp gives a scratch back, unless a panic has left it half done.
func (srv *Service) giveUp(c *scratch, err error) {
	if !errors.Is(err, ErrPanicked) {
		srv.scratches.put(c)
	}
}

// read makes requests.
func (srv *Service) read(c *scratch, asks []decide.Ask) ([]store.TakeRequest, error) {
	requests := make([]store.TakeRequest, len(asks))
	for i := range asks {
		r, wrong, text := c.decider.Read(&asks[i])
		if text != "" {
			return nil, &MisreadError{*srv.failed(c, srv.rowOf(&asks[i]), text, nil), i, wrong}
		}
		requests[i] = r
	}
	return requests, nil
}

// failed is the error of a command, which it counts.
func (srv *Service) failed(c *scratch, row *command.Row, text string, cause error) *CallError {
	c.stats.Count(row, 1, c.lane)
	srv.countError(row, []byte("-"+text))
	return &CallError{text, cause}
}

// Decide decides requests that came by another protocol than RESP, 1 to store.MaxTakes of them, in their order. They are counted, written
// to the disk and refused as a client's, and shown to monitors. It returns when all are decided, and are on the disk where replies wait for
// that. verdict is called for each that counts, and says what its caller will be told. The error is a *CallError: then nothing is known of
// any request. That of a single request is its Err. Any goroutine may call it.
func (srv *Service) Decide(requests []store.TakeRequest, verdict func(i int) decide.Verdict) (err error) {
	c := srv.scratches.get(&srv.deciding)
	row := srv.Commands.Find([]byte(takeName))
	refused, err := srv.decide(c, Caller{Addr: "inside", Trusted: true}, &takes{srv, context.Background(), row, requests}, func() {
		c.decider.Count(requests, verdict)
	})
	srv.giveUp(c, err)
	if refused != nil {
		return refused
	}
	return err
}

// Throttle is CL.THROTTLE with its numbers: max_burst, count, period and quantity. The error is a *CallError. Any goroutine may call it.
func (srv *Service) Throttle(from Caller, key string, numbers [4]int64) (store.Request, error) {
	q := &throttle{srv: srv, of: srv.Commands.Find([]byte("cl.throttle")), key: []byte(key), numbers: numbers}
	err := srv.askOnce(from, q, func(c *scratch) (text string, cause error) {
		r := &q.requests[0]
		if q.text == "" {
			q.text = c.decider.CountThrottle(r)
		}
		if q.text == "" && r.Err != nil {
			return storeError(r.Err), r.Err
		}
		return q.text, nil
	})
	return q.requests[0], err
}

// OnKey does what a command does with a key, which has these numbers after it. do may be called several times, and returns the text of
// an error in the numbers or an error of the store. The error of OnKey is a *CallError. Any goroutine may call it.
func (srv *Service) OnKey(
	from Caller, name, key string, args []int64, do func(keys store.Keys, a store.Access) (text string, err error),
) error {
	q := &keyed{srv: srv, of: srv.Commands.Find([]byte(name)), key: []byte(key), args: args, do: do}
	return srv.askOnce(from, q, func(*scratch) (text string, cause error) {
		if q.err != nil {
			return storeError(q.err), q.err
		}
		return q.text, nil
	})
}

// askOnce asks a question that has one answer. outcome says what it is, if that is an error.
func (srv *Service) askOnce(from Caller, q question, outcome func(c *scratch) (text string, cause error)) error {
	c := srv.scratches.get(&srv.deciding)
	var text string
	var cause error
	refused, err := srv.decide(c, from, q, func() { text, cause = outcome(c) })
	switch {
	case refused != nil:
		err = refused
	case err == nil && text != "":
		err = srv.failed(c, q.row(), text, cause)
	case err == nil:
		c.stats.Count(q.row(), 1, c.lane)
	}
	srv.finish(c)
	srv.giveUp(c, err)
	return err
}

// Waits reports that calls from within the process may wait, for an engine or the disk.
func (srv *Service) Waits() bool { return srv.space != nil || srv.Synchronous }

// Forbid returns why a caller may not run a command, whatever its keys, and logs that; or nil.
func (srv *Service) Forbid(from Caller, row *command.Row) *CallError {
	switch {
	case from.Trusted:
	case !srv.Users.Open():
		return &CallError{Text: errNoAuth}
	case !srv.Users.Default.Rights().MayRun(row.ACL, nil):
		srv.noteRefused(from, row, acl.DeniedCommand, row.FullName())
		return &CallError{Text: formatError(errNoPermCommand, row.FullName())}
	}
	return nil
}

// refuseWithin returns what Forbid does, or why the server does not run a command now; or nil.
func (srv *Service) refuseWithin(from Caller, row *command.Row) (refused *CallError) {
	text, refusal := srv.closed(row), error(nil)
	if row.Flags&spec.Write != 0 {
		refusal = srv.Persist.Refusal()
	}
	switch refused = srv.Forbid(from, row); {
	case refused != nil:
	case text == errBusy:
		refused = &CallError{text, ErrScriptBusy}
	case text != "":
		refused = &CallError{Text: text}
	case refusal != nil:
		refused = &CallError{formatError(ErrMisconf, refusal), refusal}
	default:
		return nil
	}
	srv.Stats.Rejected(row, refused.Text)
	return refused
}

// noteRefused logs what the user default may not do.
func (srv *Service) noteRefused(from Caller, row *command.Row, reason acl.Reason, object string) {
	c := &client.Client{Addr: from.Addr}
	c.User.Store(srv.Users.Default)
	srv.logDenial(c, acl.Entry{Reason: reason, Context: "toplevel", Object: object, Username: acl.DefaultName, AtNS: srv.Clock()})
	srv.logOf(c, refusedCommand, "command", row.FullName(), "reason", "the user may not use this "+string(reason))
}
