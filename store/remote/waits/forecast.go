package waits

import (
	"math"

	"celld/cell"
	"celld/store"
	"celld/store/remote/view"
	"celld/store/waiting"
)

// forecast is a state in which those who wait are booked, one after the other. In the zero value it is unknown.
type forecast struct {
	known            bool
	nowNS            int64
	pausedNS         int64 // so long nobody passes, from the view's instant to nowNS
	limit            cell.Limit
	st, before       cell.State // before the last was booked
	tailNS, beforeNS int64      // when the last booked waiter passes
	firstNS          uint64     // how long the first waits
}

// forecast begins with the state that the first of a line waits for. It is unknown if leases hold a part, which may flow back any time.
func (t *try) forecast(v *view.View, one *waiter, binding int) forecast {
	c := &one.own.Calls[binding]
	if one.states[binding] != t.line.state || c.Limit.HoldsLeases() {
		return forecast{}
	}
	st, leased := stateOf(v, c)
	f := forecast{known: !leased, nowNS: v.NowNS, limit: *c.Limit, st: st, firstNS: one.decided.WaitNS}
	if r := t.line.waits.pause(c, v.NowNS); r != nil {
		f.known = f.known && r.UntilNS != 0
		f.pausedNS, f.nowNS = r.UntilNS-v.NowNS, r.UntilNS
	}
	return f
}

// book is how long a call waits behind those who are booked already.
func (f *forecast) book(cost int64) (waitNS uint64) {
	if !f.known {
		return 0
	}
	if !f.limit.Bookable() {
		return max(f.after(f.limit.Forecast(&f.st, f.nowNS, cost)), f.firstNS)
	}
	f.before, f.beforeNS = f.st, f.tailNS
	waitNS = f.limit.Book(&f.st, f.nowNS, cost)
	f.tailNS = f.nowNS + int64(min(waitNS, uint64(math.MaxInt64-f.nowNS)))
	return f.after(waitNS)
}

// after is a wait that begins at nowNS.
func (f *forecast) after(waitNS uint64) uint64 {
	if waitNS == cell.Never {
		return waitNS
	}
	return waitNS + uint64(f.pausedNS)
}

func (f *forecast) unbook() { f.st, f.tailNS = f.before, f.beforeNS }

// skip books many calls at once.
func (f *forecast) skip(cost int64) {
	for f.known && f.limit.Bookable() && cost > 0 {
		if f.limit.Additive() {
			waiting.Owe(&f.limit, &f.st, f.nowNS, cost)
			return
		}
		some := min(cost, f.limit.Count)
		f.book(some)
		cost -= some
	}
}

// stateOf is the state of a call in a view, and whether there are leases of it.
func stateOf(v *view.View, c *store.Call) (st cell.State, leased bool) {
	_ = v.Update(c.Key, store.Access{NowNS: v.NowNS, NoTouch: true}, func(value store.Value, there bool) (store.Value, bool) {
		if !there || !value.HoldsLimits {
			return value, false
		}
		for i := range *value.Limits {
			l := &(*value.Limits)[i]
			shape := l.Limit.Shape
			shape.Leases = false
			switch {
			case c.Policy != nil && (l.Policy == nil || l.Policy.ID != c.Policy.ID),
				c.Policy == nil && (l.Policy != nil || shape != c.Limit.Shape):
			case l.Limit.Leases:
				leased = true
			default:
				st = l.State
			}
		}
		return value, false
	})
	return st, leased
}

// stateText is the states of all calls, as text.
func stateText(v *view.View, r *store.TakeRequest) string {
	var b []byte
	for i := range r.Calls {
		c := &r.Calls[i]
		st, _ := stateOf(v, c)
		b = append(c.Limit.AppendState(b, &st), ' ')
	}
	return string(b)
}
