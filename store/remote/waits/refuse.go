package waits

import (
	"slices"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/view"
	"celld/store/waiting"
)

// refuse answers a waiter as a call that does not wait, unless it has been answered or has gone.
func (w *Waits) refuse(v *waiter) {
	switch {
	case v.alone(), v.line.due(v): // it is answered at once
		return
	case v.trial != untried:
		v.trial = refused
		return
	}
	l := v.line
	first := l == nil || len(l.Waiters) > len(l.grants) && l.Waiters[len(l.grants)] == v
	if w.stepOut(v) {
		defer l.serve()
	} else {
		first = true
	}
	deadline := w.deadline()
	if last := v.arrived.Add(v.patience()).Add(w.Timeout); !v.looked && last.Before(deadline) {
		deadline = last // a try under way took the time that was left to look at it
	}
	known := w.refresh(v)
	done := func(err error) {
		w.mu.Lock()
		defer w.unlock()
		if err != nil {
			w.Failure.Take(&v.own, err, v.Access)
		}
		if !v.Left() {
			w.room.Answer(v, &v.own)
		} else if err == nil && v.own.Err == nil && !v.own.Taken.Limited {
			w.giveBack(&grant{by: v, answer: v.own})
		}
	}
	decide := func(of *view.View) {
		v.decided = v.terms
		v.decided.Mode = store.DontWait
		switch {
		case !known:
			v.own.Taken, v.own.Err = store.Taken{}, policy.ErrNoPolicy
		case first:
			v.own.Taken, v.own.Err = of.Take(v.own.Calls, v.own.TakeOptions, of.At(v.Access))
		default:
			refuse(of, &v.own, v.Access, 1)
		}
	}
	w.change(v, deadline, decide, done)
}

// refuse decides on a call that does not pass, as others come before it. Its retry after is waitNS at least.
func refuse(v *view.View, r *store.TakeRequest, a store.Access, waitNS uint64) {
	a.NowNS = v.NowNS
	o := r.TakeOptions
	o.Terms, o.Mode = nil, cell.Peek
	if r.Taken, r.Err = v.Take(r.Calls, o, a); r.Err == nil && r.Taken.Limited && r.Takes() {
		o.Mode = cell.Take // it is blocked, if its limit says so
		r.Taken, r.Err = v.Take(r.Calls, o, a)
	}
	if r.Err != nil {
		return
	}
	if r.Cost == 0 && !r.Takes() {
		waitNS = 0
	}
	d := &r.Calls[r.Taken.Binding].Decision
	if waiting.StandBehind(d, waitNS); waitNS > 0 {
		r.Taken.Limited, r.Taken.Granted, r.Taken.RetryAfterNS = true, 0, d.RetryAfterNS
	}
}

// For reports whether calls wait for a key, as clients name it.
func (w *Waits) For(key string) bool {
	if w.room.Callers() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines.OfKey[key]) > 0
}

// ahead is a line that a call comes behind.
type ahead struct {
	call   *store.Call
	tailNS int64 // when the last that was looked at passes; 0: none was
	cost   int64 // of all who wait there and are not booked; unknown: their limits are others
}

const unknown = -1

// ahead returns the lines that a call comes behind. v is the view that decides on the call; nil: it is not decided now.
func (w *Waits) ahead(v *view.View, r *store.TakeRequest) (all []ahead) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range r.Calls {
		c := &r.Calls[i]
		l := w.find(stateOfCall(c))
		if l == nil {
			continue
		}
		if those := l.standing(v); len(those) > 0 { // else all are booked, and it comes behind them by itself
			all = append(all, ahead{c, l.tailNS, l.cost(c, those)})
		}
	}
	return all
}

// standing are those who wait and are not booked. A view may decide on a try and on calls that came after it: what the try has granted then
// is in the view already, though nobody was told. Counted twice, one with WAIT took the room of two, and a call was denied though some was
// left.
func (l *line) standing(v *view.View) []*waiter {
	those := l.Waiters[len(l.grants):]
	if v == nil || l.current == nil || l.current.view.Load() != v {
		return those
	}
	decided := l.current.decided()
	return slices.DeleteFunc(slices.Clone(those), func(one *waiter) bool { return decided[one] })
}

// cost is what those take, or so much of it that nothing is left. It is unknown if one has another limit than a call.
func (l *line) cost(c *store.Call, those []*waiter) (cost int64) {
	for _, one := range those {
		if own := one.own.Calls[slices.Index(one.states, l.state)]; c.Policy == nil && own.Limit.Params != c.Limit.Params {
			return unknown
		}
		if cost += one.cost(l.state); cost > c.Limit.Capacity() {
			break
		}
	}
	return cost
}

// behind is how long a call stands behind those who wait, 0 if it does not: there is nobody, or there is room for all of them and for it.
// Those who have just come wait for the engine's answer, and most of them pass then. Until there was a look at the room, a call that came
// in that moment was denied, however little was used.
func (w *Waits) behind(v *view.View, r *store.TakeRequest, a store.Access) (waitNS uint64) {
	a.NowNS = v.NowNS
	for _, l := range w.ahead(v, r) {
		ruled := w.Policies.HasRules() && l.call.Rule(w.Policies, v.NowNS) != nil
		if ruled || l.call.CostOf(r.Cost) == 0 && r.Takes() { // a rule decides, or it takes nothing
			continue
		}
		if l.cost != unknown {
			look := store.TakeOptions{Cost: l.cost + l.call.CostOf(r.Cost), Mode: cell.Peek}
			if look.Cost <= cell.MaxCost {
				c := *l.call
				c.Own = false
				if taken, err := v.Take([]store.Call{c}, look, a); err == nil && !taken.Limited {
					continue
				}
			}
		}
		waitNS = max(waitNS, uint64(max(l.tailNS-v.NowNS, 0)))
		if l.call.Limit.Bookable() {
			waitNS += l.call.Limit.EarnsNS(l.call.CostOf(r.Cost))
		}
		waitNS = max(waitNS, 1)
	}
	return waitNS
}
