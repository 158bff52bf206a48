package remote

import (
	"celld/cell"
	"celld/store"
)

// refuse answers a waiter as a call that does not wait.
func (w *waits) refuse(v *waiter) {
	switch {
	case v.refusing:
		return
	case v.tried:
		v.refused = true
		return
	case v.With != nil:
		w.room.Part(v)
	}
	l := v.line
	if w.handOver(v) {
		l = nil
	}
	first := l == nil || len(l.Waiters) > len(l.slots) && l.Waiters[len(l.slots)] == v
	if l != nil {
		l.remove(v)
		defer l.serve()
	}
	v.refusing = true
	deadline := w.store.deadline()
	if last := v.arrived.Add(v.patience()).Add(w.store.options.Timeout); !v.looked && last.Before(deadline) {
		deadline = last // a try under way has taken the time in which it was to be looked at
	}
	keys := v.keys(w.store)
	known := w.refresh(v)
	done := func(err error) {
		w.mu.Lock()
		defer w.unlock()
		if err != nil {
			v.ask.Taken, v.ask.Err = store.Taken{}, err
			w.store.failure.Take(&v.ask, err, v.Access)
		}
		if !v.Left() {
			w.room.Answer(v, &v.ask)
		} else if err == nil && v.ask.Err == nil && !v.ask.Taken.Limited {
			w.giveBack(&slot{by: v, ask: v.ask})
		}
	}
	decide := func(view *View) {
		v.decided = v.terms
		v.decided.Mode = store.DontWait
		v.ask.Terms = &v.decided
		a := v.Access
		a.NowNS = view.NowNS
		switch {
		case !known:
			v.ask.Taken, v.ask.Err = store.Taken{}, store.ErrNoPolicy
		case first:
			one := [1]store.TakeRequest{v.ask}
			view.TakeBatch(one[:], a, nil)
			v.ask = one[0]
		default:
			view.refuse(&v.ask, a, 1)
		}
	}
	w.asks = append(w.asks, &operation{key: keys[0], access: v.Access, deadline: deadline, change: &change{keys: keys, decide: decide, done: done}})
}

// refuse decides on a call that does not pass, as others come before it. It is told to come again after waitNS at least.
func (v *View) refuse(r *store.TakeRequest, a store.Access, waitNS uint64) {
	a.NowNS = v.NowNS
	terms, mode := r.Terms, r.Mode
	peeks := mode == cell.Peek || r.Cost == 0
	r.Terms, r.Mode = nil, cell.Peek
	one := [1]store.TakeRequest{*r}
	v.TakeBatch(one[:], a, nil)
	if one[0].Err == nil && one[0].Taken.Limited && !peeks { // it is blocked, if its limit says so
		one[0].Mode = cell.Take
		v.TakeBatch(one[:], a, nil)
	}
	r.Terms, r.Mode, r.Taken, r.Err = terms, mode, one[0].Taken, one[0].Err
	if r.Err != nil {
		return
	}
	d := &r.Calls[r.Taken.Binding].Decision
	d.Remaining = 0
	if r.Cost == 0 {
		return
	}
	if d.RetryAfterNS != cell.Never || !d.Limited {
		if !d.Limited {
			d.RetryAfterNS = 0
		}
		d.RetryAfterNS = max(d.RetryAfterNS, waitNS)
	}
	d.Limited = true
	r.Taken.Limited, r.Taken.Granted, r.Taken.RetryAfterNS = true, 0, d.RetryAfterNS
}

// waitedFor reports whether calls wait for a key, which is the engine's.
func (s *Store) waitedFor(key string) bool {
	w := &s.waits
	if w.room.Callers() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines.OfKey[key[len(s.options.Prefix):]]) > 0
}

// takeBehind decides on a plain call that stands behind those who wait here. It returns false for one that does not.
func (v *View) takeBehind(r *store.TakeRequest, a store.Access) bool {
	w := &v.store.waits
	if w.room.Callers() == 0 || r.Mode == cell.Force || r.Cost < 0 || r.Terms != nil && (r.Terms.Mode == store.Reserve || r.Terms.Name != "") { // a repeat takes nothing
		return false
	}
	wait := w.behind(r, v.NowNS)
	if wait == 0 {
		return false
	}
	v.refuse(r, a, wait)
	return true
}

// behind is how long a call stands behind those who wait, 0 if it does not.
func (w *waits) behind(r *store.TakeRequest, nowNS int64) (waitNS uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range r.Calls {
		c := &r.Calls[i]
		for _, l := range w.lines.OfKey[string(c.Key)] {
			if c.Policy == 0 && (l.state.policy != "" || l.state.shape != c.Limit.Shape) {
				continue
			}
			if c.Policy != 0 {
				if p := w.store.policies.PolicyOf(c.Policy); p == nil || p.Name != l.state.policy {
					continue
				}
			}
			if len(l.Waiters) == len(l.slots) { // all are booked, so it comes behind them by itself
				continue
			}
			waitNS = max(waitNS, uint64(max(l.tailNS-nowNS, 0)))
			if c.Limit.Bookable() {
				waitNS += c.Limit.EarnsNS(r.Cost)
			}
			waitNS = max(waitNS, 1)
		}
	}
	return waitNS
}
