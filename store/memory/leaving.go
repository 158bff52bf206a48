package memory

import (
	"celld/store"
	"time"
)

// answer ends a wait. It is over at nowNS.
func (w *waiter) answer(t store.Taken, err error, nowNS int64) {
	w.leave(nowNS)
	w.Request.Taken, w.Request.Err = t, err
	w.store.waits.Answer(w, w.Request)
}

// leave takes a waiter out of its queue.
func (w *waiter) leave(nowNS int64) {
	w.queue.remove(w.store, w, nowNS)
	if calls := w.asked.calls; len(calls) > 1 {
		for i := range calls {
			if q := calls[i].sh.queueOf(&calls[i]); q != nil && q.kept == w {
				q.poke(nowNS)
			}
		}
	}
}

// goAway takes out one whose turn has not come, and reports whether it still waited. All its shards are locked.
func (w *waiter) goAway(nowNS int64) bool {
	room, q := &w.store.waits, w.queue
	if w.With != nil {
		room.Part(w)
	} else if q == nil {
		return false
	} else if next := room.HandOver(w); next != nil {
		q.replace(w, next)
	} else {
		first := q.First() == w
		w.leave(nowNS)
		q.ahead.stale = true
		if first && len(q.Waiters) > 0 {
			q.poke(nowNS)
		}
	}
	room.Leave(w)
	return true
}

// expire is what a waiter's timer calls at its deadline.
func (w *waiter) expire() {
	s := w.store
	s.lockAll(w.locks, 0)
	q, early := w.queue, w.deadlineNS-s.now()
	if w.With != nil {
		q = w.With.queue
	}
	if q != nil && early > 0 {
		w.Timer.Reset(time.Duration(early))
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
	r, waited := w.asked, false
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
		a := w.Access
		a.NowNS = nowNS
		r.Terms.Mode = store.DontWait
		t, err = s.takeLocked(r, a, &paid, turn{})
		r.Terms.Mode = store.Wait
		return err
	})
	if waited {
		r.Taken, r.Err = t, err
		w.Waker.Wake()
	}
	return waited
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited. With nil its caller
// has gone: it is not answered, and its Waker is not woken. With ErrRefused it is answered as a call that does not wait, and with
// another error it is answered with that.
func (s *Store) Leave(r *store.TakeRequest, why error) bool {
	w := s.waits.Find(r)
	if w == nil {
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
		w.Waker.Wake()
	}
	return true
}
