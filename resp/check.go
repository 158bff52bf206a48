package resp

import (
	"cmp"
	"context"
	"math"
	"time"

	"celld/cell"
	"celld/store"
)

// Check is the answer of Server.Check.
type Check struct {
	Limited bool
	Retry   time.Duration // until the call passes; -1: it will not, or it has passed
	Limits  []CheckLimit  // of the policies, in their order
	Binding int           // which of them binds
}

// CheckLimit is what a limit says to a Check.
type CheckLimit struct {
	Policy    string        // the name of the policy that was found; "": a literal
	Text      string        // the limit's
	Name      string        // the policy and, where that has several limits, the text; of a literal the text
	Limited   bool          // by itself
	ByRule    bool          // a rule has denied
	Limit     int64         // the most that passes at one instant
	Remaining int64         // how many more pass now
	Retry     time.Duration // until the call passes; -1: it will not, or it has passed
	Reset     time.Duration // until the limit is full again
	Count     int64         // so many calls of it
	Period    time.Duration // in each such time; 0: it counts what is in flight
}

// Check is CL.TAKE key @policy [@policy ...] of a caller. The error of the call is a *CallError: NOPOLICY where there is no such policy,
// and STOREDOWN where the engine that may have it is away.
func (srv *Server) Check(ctx context.Context, from Caller, key string, policies ...string) (c Check, err error) {
	ask := Ask{Key: key}
	for _, name := range policies {
		ask.Limits = append(ask.Limits, "@"+name)
	}
	var refused error
	err = srv.Take(ctx, from, []Ask{ask}, func(t *Taken, err error) {
		if refused = err; err == nil {
			c = t.Check
		}
	})
	return c, cmp.Or(err, refused)
}

// checkOf tells of a take, with limits appended to those given.
func checkOf(r *store.TakeRequest, limits []CheckLimit) Check {
	for i := range r.Calls {
		limits = append(limits, checkLimit(&r.Calls[i]))
	}
	return Check{Limited: r.Taken.Limited, Retry: fromNS(r.Taken.RetryAfterNS), Binding: r.Taken.Binding, Limits: limits}
}

func checkLimit(call *store.Call) CheckLimit {
	d := &call.Decision
	l := CheckLimit{Limited: d.Limited, ByRule: d.Limit == 0, Limit: d.Limit, Remaining: d.Remaining, Retry: fromNS(d.RetryAfterNS),
		Reset: fromNS(d.ResetAfterNS), Count: call.Limit.Count, Period: time.Duration(call.Limit.PeriodNS), Text: call.Limit.String()}
	switch of := call.Policy; {
	case of == nil:
		l.Name = l.Text
	case len(of.Policy.Limits) > 1:
		l.Policy, l.Name = of.Policy.Name, of.Policy.Name+" "+l.Text
	default:
		l.Policy, l.Name = of.Policy.Name, of.Policy.Name
	}
	if call.Limit.HoldsLeases() {
		l.Period = 0
	}
	return l
}

// fromNS is a duration in whole µs, rounded up; -1 for never.
func fromNS(ns uint64) time.Duration {
	if ns == cell.Never {
		return -1
	}
	return time.Duration((min(ns, math.MaxInt64-999) + 999) / 1000 * 1000)
}
