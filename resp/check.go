package resp

import (
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
	Policy    string        // the name of the policy that was found
	Name      string        // that, and the limit's text where the policy has several
	Limit     int64         // the most that passes at one instant
	Remaining int64         // how many more pass now
	Reset     time.Duration // until the limit is full again
	Count     int64         // so many calls of it
	Period    time.Duration // in each such time; 0: it counts what is in flight
}

// Check is CL.TAKE key @policy [@policy ...]. The error is a *CallError: NOPOLICY where there is no such policy, and STOREDOWN where the
// engine that may have it is away.
func (srv *Server) Check(key string, policies ...string) (c Check, err error) {
	limits := make([]string, len(policies))
	for i, name := range policies {
		limits[i] = "@" + name
	}
	r, err := srv.sessions.Take(key, limits[0], limits[1:]...)
	if err != nil {
		return c, err
	}
	c = Check{Limited: r.Taken.Limited, Retry: fromNS(r.Taken.RetryAfterNS), Binding: r.Taken.Binding}
	for i := range r.Calls {
		c.Limits = append(c.Limits, checkLimit(&r.Calls[i]))
	}
	return c, nil
}

func checkLimit(call *store.Call) CheckLimit {
	d, of := &call.Decision, call.Policy.Policy
	l := CheckLimit{Policy: of.Name, Name: of.Name, Limit: d.Limit, Remaining: d.Remaining, Reset: fromNS(d.ResetAfterNS),
		Count: call.Limit.Count, Period: time.Duration(call.Limit.PeriodNS)}
	if len(of.Limits) > 1 {
		l.Name += " " + call.Limit.String()
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
