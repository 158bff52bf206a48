package resp

import (
	"math"
	"time"

	"celld/cell"
)

// Check is the answer of Server.Check.
type Check struct {
	Limited   bool
	Limit     int64         // the most that passes at one instant
	Remaining int64         // how many more pass now
	Retry     time.Duration // until the call passes; -1: it will not, or it has passed
	Reset     time.Duration // until the limit is full again

	Policy string        // the name of the policy that was found
	Count  int64         // so many calls of it
	Period time.Duration // in each such time; 0: it counts what is in flight
}

// Check is CL.TAKE key @policy. The error is a *CallError: NOPOLICY where there is no such policy, and STOREDOWN where the engine that may
// have it is away.
func (srv *Server) Check(key, policy string) (c Check, err error) {
	r, err := srv.sessions.Take(key, "@"+policy)
	if err != nil {
		return c, err
	}
	binding := &r.Calls[r.Taken.Binding]
	if found := srv.sessions.Store.Policy([]byte(policy)); found != nil { // api for api:gold
		policy = found.Name
	}
	c = Check{Limited: r.Taken.Limited, Limit: binding.Decision.Limit, Remaining: binding.Decision.Remaining,
		Retry: fromNS(r.Taken.RetryAfterNS), Reset: fromNS(r.Taken.ResetAfterNS),
		Policy: policy, Count: binding.Limit.Count, Period: time.Duration(binding.Limit.PeriodNS)}
	if binding.Limit.HoldsLeases() {
		c.Period = 0
	}
	return c, nil
}

// fromNS is a duration in whole µs, rounded up; -1 for never.
func fromNS(ns uint64) time.Duration {
	if ns == cell.Never {
		return -1
	}
	return time.Duration((min(ns, math.MaxInt64-999) + 999) / 1000 * 1000)
}
