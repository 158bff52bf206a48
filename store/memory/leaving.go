package memory

import (
	"celld/store"
	"time"
)

// answer ends a wait. It is over at nowNS.
func (w *waiter) answer(t store.Taken, err error, nowNS int64) {
	w.leave(nowNS)
	joined := w.joined
	w.joined = nil
	for _, j := range joined {
		j.tellJoined(w.request, t, err)
	}
	w.tell(t, err)
}

// leave takes a waiter out of its queue, and of the store.
func (w *waiter) leave(nowNS int64) {
	w.queue.remove(w.store, w, nowNS)
	if calls := w.request.calls; len(calls) > 1 {
		for i := range calls {
			if q := calls[i].sh.queueOf(&calls[i]); q != nil && q.kept == w {
				q.poke(nowNS)
			}
		}
	}
	w.makeUnknown()
	w.gone()
}

// gone notes that a waiter waits no longer.
func (w *waiter) gone() {
	w.store.waiting.held.Add(-1)
	if w.waker != nil {
		w.store.waiting.callers.Add(-1)
	}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// goAway is leave of one whose turn has not come, and reports whether it still waited. All its shards are locked.
func (w *waiter) goAway(nowNS int64) bool {
	if w.with != nil {
		w.part()
		w.gone()
		return true
	}
	q := w.queue
	if q == nil {
		return false
	}
	if w.handOver() {
		w.gone()
		return true
	}
	wasFirst := q.first == w
	w.leave(nowNS)
	q.ahead.stale = true
	if wasFirst && q.first != nil {
		q.poke(nowNS)
	}
	return true
}

// expire is what a waiter's timer calls at its deadline.
func (w *waiter) expire() {
	s := w.store
	s.lockAll(w.locks, 0)
	q, early := w.queue, w.deadlineNS-s.now()
	if w.with != nil {
		q = w.with.queue
	}
	if q != nil && early > 0 {
		w.timer.Reset(time.Duration(early))
	}
	s.unlockAll(w.locks)
	if q == nil || early > 0 {
		return
	}
	s.serve(q) // its moment may have come together with its deadline
	s.refuse(w, w.deadlineNS)
}

// refuse answers a waiter as a call that does not wait.
func (s *Store) refuse(w *waiter, nowNS int64) bool {
	r, waited := w.request, false
	paid := prepaid{store: s}
	var t store.Taken
	err := paid.run(w.locks, nowNS, func() (err error) {
		if waited = waited || w.goAway(nowNS); !waited {
			return nil
		}
		paid.shard = r.calls[0].sh
		if !w.refresh() {
			return store.ErrNoPolicy
		}
		a := w.access
		a.NowNS = nowNS
		r.Terms.Mode = store.DontWait
		t, err = s.takeLocked(r, a, &paid, turn{})
		r.Terms.Mode = store.Wait
		return err
	})
	if waited {
		r.Taken, r.Err = t, err
		w.waker.Wake()
	}
	return waited
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited. With nil its caller
// has gone: it is not answered, and its Waker is not woken. With ErrRefused it is answered as a call that does not wait, and with
// another error it is answered with that.
func (s *Store) Leave(r *store.TakeRequest, why error) bool {
	if r.Terms == nil {
		return false
	}
	w, waited := r.Terms.Place.(*waiter)
	if !waited {
		return false
	}
	now := s.now()
	if why == store.ErrRefused {
		return s.refuse(w, now)
	}
	s.lockAll(w.locks, now)
	defer s.unlockAll(w.locks)
	if !w.goAway(now) {
		return false
	}
	if why != nil {
		r.Taken, r.Err = store.Taken{}, why
		w.waker.Wake()
	}
	return true
}
