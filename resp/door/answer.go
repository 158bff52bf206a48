package door

import (
	"math"
	"time"

	"celld/cell"
	"celld/store"
)

// Taken is the answer to a call that was decided.
type Taken struct {
	Limited bool
	Retry   time.Duration // until the call passes; -1: it will not, or it has passed
	Reset   time.Duration // until all limits are full again
	Granted int64         // below 0: so much was given back
	Wait    time.Duration // until the call may go ahead
	Lease   int64         // 0: none
	Limits  []Limit       // in their order
	Binding int           // which of them binds
}

// Limit is what a limit says to a call.
type Limit struct {
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

// set makes an answer that of a request. It uses its Limits again.
func (t *Taken) set(r *store.TakeRequest) {
	*t = Taken{Limited: r.Taken.Limited, Retry: fromNS(r.Taken.RetryAfterNS), Reset: fromNS(r.Taken.ResetAfterNS), Granted: r.Taken.Granted,
		Limits: t.Limits[:0], Binding: r.Taken.Binding}
	for i := range r.Calls {
		t.Limits = append(t.Limits, limitOf(&r.Calls[i]))
	}
	if r.Terms != nil {
		t.Wait, t.Lease = fromNS(r.Terms.WaitNS), r.Terms.Lease
	}
}

func limitOf(call *store.Call) Limit {
	d := &call.Decision
	l := Limit{Limited: d.Limited, ByRule: d.Limit == 0, Limit: d.Limit, Remaining: d.Remaining, Retry: fromNS(d.RetryAfterNS),
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

// Throttled is the answer of a CL.THROTTLE.
type Throttled struct {
	Limited          bool
	Limit, Remaining int64
	Retry, Reset     int64 // s, as CL.THROTTLE rounds them; Retry is -1 for a call that never passes, or has passed
}
