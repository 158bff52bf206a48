package remote

import (
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/waiting"
)

// giveBack gives back what a slot has taken that nobody uses. What lies ahead is given back only where nobody has booked behind it: who
// comes next would get the last moment that is booked, at which another goes ahead.
func (w *waits) giveBack(s *slot) {
	r, after, v := s.ask, s.after, s.by
	if !waiting.GivesBack(&r) {
		return
	}
	ahead := s.at.After(time.Now())
	decide := func(view *View) {
		a := v.Access
		a.NowNS = view.NowNS
		waiting.GiveBack(&r, !ahead || after != "" && view.stateText(&r) == after, view, a)
	}
	keys := v.keys(w.store)
	w.asks = append(w.asks, &operation{key: keys[0], access: v.Access, deadline: w.store.deadline(), change: &change{keys: keys, decide: decide, done: func(error) {}}})
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
