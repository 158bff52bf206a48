package door

import (
	"cmp"
	"context"
	"errors"
	"time"

	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/command/limit"
	"celld/resp/gate"
	"celld/store"
	"celld/store/policy"
)

// takeName is the command that calls from within are.
const takeName = "CL.TAKE"

// Caller is who asks without a connection of RESP.
type Caller struct {
	Addr    string // for MONITOR and logs
	Trusted bool   // it may do everything; else it is the user default, like a client that has not authenticated
}

// Ask is a CL.TAKE, CL.MTAKE or CL.GIVE by its values, Option an option of it, and Verdict what a caller of Decide was told.
type (
	Ask     = decide.Ask
	Option  = decide.Option
	Verdict = decide.Verdict
)

// MisreadError is the error of a call that is not well formed.
type MisreadError struct {
	CallError
	Ask   int // which of several
	Limit int // which of its limits is wrong by itself; -1: none
}

func (e *MisreadError) Unwrap() error { return &e.CallError }

// Take decides takes one after the other, as a client's pipeline. If one is not well formed, it decides none: the error is a *MisreadError.
// answer is called for each, in their order, with what is taken, which is valid until answer returns, or with its error, a *CallError. Any
// other error ends all: it is a *CallError too, or that of ctx. When ctx ends, who waits leaves the line, and what was granted meanwhile
// flows back. Any goroutine may call it.
func (d *Door) Take(ctx context.Context, from Caller, asks []Ask, answer func(t *Taken, err error)) error {
	if refused := d.refuse(from, d.rowOf(&asks[0]), noKeys); refused != nil { // who learns nothing of policies
		return refused
	}
	c := d.desk()
	c.stats.Begin(d.Clock())
	var taken Taken
	version := d.Store.PoliciesVersion()
	requests, err := d.read(c, asks)
	for len(requests) > 0 && err == nil {
		n := d.together(from, asks, requests)
		if d.Store.PoliciesVersion() != version { // a policy may have changed while one before waited
			n = 1
			r, _, text := c.decider.Read(&asks[0])
			if requests[0] = r; text != "" {
				answer(nil, d.failed(c, d.rowOf(&asks[0]), text, nil))
				requests, asks = requests[1:], asks[1:]
				continue
			}
		}
		some, refused := requests[:n], (*CallError)(nil)
		refused, err = d.decide(c, from, &takes{d, ctx, d.rowOf(&asks[0]), some}, func() {
			c.decider.CountTaken(some, d.Limiter == store.Limiter(d.Store))
		})
		for i := range some {
			switch r := &some[i]; {
			case err != nil:
			case refused != nil:
				answer(nil, refused)
			case r.Err != nil:
				row := d.rowOf(&asks[i])
				answer(nil, d.failed(c, row, d.textOf(from, row, r.Err), r.Err))
			default:
				c.stats.Count(d.rowOf(&asks[i]), 1, c.lane)
				taken.set(r)
				answer(&taken, nil)
			}
		}
		d.Finish(&c.stats, c.lane)
		requests, asks = requests[n:], asks[n:]
	}
	d.Finish(&c.stats, c.lane)
	d.giveUp(c, err)
	return err
}

func noKeys(func(key []byte) bool) {}

// rowOf is the row of the command that asks the same.
func (d *Door) rowOf(a *Ask) *command.Row { return d.Commands.Find([]byte(a.Command())) }

// together is how many of the first requests are decided at once: those of one command that neither wait nor hold leases. Of a user who may
// not do everything it is one, as each may be refused by itself.
func (d *Door) together(from Caller, asks []Ask, requests []store.TakeRequest) (n int) {
	if !from.Trusted && !d.Users.Default.Rights().MayAll() {
		return 1
	}
	same := func(i int) bool { return requests[i].Terms == nil && asks[i].Command() == asks[0].Command() }
	for n = 1; same(0) && n < min(store.MaxTakes, len(requests)) && same(n); n++ { //nolint:revive // it counts
	}
	return n
}

// giveUp gives a desk back, unless a panic has left it half done.
func (d *Door) giveUp(c *desk, err error) {
	if !errors.Is(err, ErrPanicked) {
		d.desks.Put(c)
	}
}

// read makes requests.
func (d *Door) read(c *desk, asks []Ask) ([]store.TakeRequest, error) {
	requests := make([]store.TakeRequest, len(asks))
	for i := range asks {
		r, wrong, text := c.decider.Read(&asks[i])
		if text != "" {
			return nil, &MisreadError{*d.failed(c, d.rowOf(&asks[i]), text, nil), i, wrong}
		}
		requests[i] = r
	}
	return requests, nil
}

// failed is the error of a command, which it counts.
func (d *Door) failed(c *desk, row *command.Row, text string, cause error) *CallError {
	c.stats.Count(row, 1, c.lane)
	d.CountError(row, []byte("-"+text))
	return &CallError{text, cause}
}

// Decide decides requests that came by another protocol than RESP, 1 to store.MaxTakes of them, in their order. They are counted, written
// to the disk and refused as a client's, and shown to monitors. It returns when all are decided, and are on the disk where replies wait for
// that. verdict is called for each that counts, and says what its caller will be told. The error is a *CallError: then nothing is known of
// any request. That of a single request is its Err. Any goroutine may call it.
func (d *Door) Decide(requests []store.TakeRequest, verdict func(i int) Verdict) (err error) {
	c := d.desk()
	row := d.Commands.Find([]byte(takeName))
	refused, err := d.decide(c, Caller{Addr: "inside", Trusted: true}, &takes{d, context.Background(), row, requests}, func() {
		c.decider.Count(requests, verdict)
	})
	d.giveUp(c, err)
	if refused != nil {
		return refused
	}
	return err
}

// TakeOne is Take of one. The error of the call is a *CallError: NOPOLICY where there is no such policy, and STOREDOWN where the engine
// that may have it is away.
func (d *Door) TakeOne(ctx context.Context, from Caller, ask Ask) (t Taken, err error) {
	var refused error
	err = d.Take(ctx, from, []Ask{ask}, func(taken *Taken, err error) {
		if refused = err; err == nil {
			t = *taken
		}
	})
	return t, cmp.Or(err, refused)
}

// Throttle is CL.THROTTLE with its numbers: max_burst, count, period and quantity. The error is a *CallError. Any goroutine may call it.
func (d *Door) Throttle(from Caller, key string, numbers [4]int64) (t Throttled, err error) {
	q := &throttle{d: d, of: d.Commands.Find([]byte("cl.throttle")), key: []byte(key), numbers: numbers}
	r := &q.requests[0]
	err = d.askOnce(from, q, func(c *desk) (text string, cause error) {
		if q.text == "" {
			q.text = c.decider.CountThrottle(r)
		}
		if q.text == "" && r.Err != nil {
			return StoreText(r.Err), r.Err
		}
		return q.text, nil
	})
	t = Throttled{Limited: r.Decision.Limited, Limit: r.Decision.Limit, Remaining: r.Decision.Remaining}
	t.Retry, t.Reset = decide.Seconds(&r.Decision)
	return t, err
}

// ChangeLease is CL.RENEW, CL.RELEASE or CL.SETTLE. It returns false where there is no such lease. The error is a *CallError. Any goroutine
// may call it.
func (d *Door) ChangeLease(from Caller, l limit.LeaseChange) (did bool, err error) {
	err = d.onKey(from, l.Command, string(l.Key), l.Words(), func(keys store.Keys, a store.Access) (text string, err error) {
		if text = l.Check(); text == "" {
			did, err = l.Make(keys, a)
		}
		return text, err
	})
	return did, err
}

// Show is CL.SHOW of a key. The error is a *CallError. Any goroutine may call it.
func (d *Door) Show(from Caller, key string) (all []limit.Shown, err error) {
	err = d.onKey(from, "cl.show", key, nil, func(keys store.Keys, a store.Access) (text string, err error) {
		all, err = limit.Look(d.Port, keys, []byte(key), a)
		return "", err
	})
	return all, err
}

// onKey does what a command does with a key, which has these words after it. do may be called several times, and returns the text of an
// error in the words or an error of the store.
func (d *Door) onKey(
	from Caller, name, key string, args []string, do func(keys store.Keys, a store.Access) (text string, err error),
) error {
	q := &keyed{d: d, of: d.Commands.Find([]byte(name)), key: []byte(key), args: args, do: do}
	return d.askOnce(from, q, func(*desk) (text string, cause error) {
		if q.err != nil {
			return d.textOf(from, q.of, q.err), q.err
		}
		return q.text, nil
	})
}

// MaxWait is the longest that a call may wait (--wait-max).
func (d *Door) MaxWait() time.Duration {
	return time.Duration(d.Config.WaitMax.Get()) * time.Millisecond
}

// Policy returns the policy of a name, or that to which it falls back; nil: there is none.
func (d *Door) Policy(name string) *policy.Policy { return d.Store.Policy([]byte(name)) }

// Loading reports that the server reads its files, and refuses calls until then.
func (d *Door) Loading() bool { return d.Gate.Has(gate.Loading) }

// askOnce asks a question that has one answer. outcome says what it is, if that is an error.
func (d *Door) askOnce(from Caller, q question, outcome func(c *desk) (text string, cause error)) error {
	c := d.desk()
	var text string
	var cause error
	refused, err := d.decide(c, from, q, func() { text, cause = outcome(c) })
	switch {
	case refused != nil:
		err = refused
	case err == nil && text != "":
		err = d.failed(c, q.row(), text, cause)
	case err == nil:
		c.stats.Count(q.row(), 1, c.lane)
	}
	d.Finish(&c.stats, c.lane)
	d.giveUp(c, err)
	return err
}

// Waits reports that calls from within the process may wait, for an engine or the disk.
func (d *Door) Waits() bool { return !d.Port.InProcess() || d.Synchronous }
