package memory

import (
	"celld/store"
	"time"
)

// tell ends a wait that is over at nowNS. The request has what was taken.
func (s *takes) tell(w *waiter, err error, nowNS int64) {
	s.leave(w, nowNS)
	if w.Request.Err = err; err != nil {
		w.Request.Taken = store.Taken{}
	}
	s.waits.Answer(w, w.Request)
}

// leave takes a waiter out of its queue.
func (s *takes) leave(w *waiter, nowNS int64) {
	w.queue.remove(w, nowNS)
	for i := 0; i < len(w.Calls) && len(w.Calls) > 1; i++ {
		c := &w.Calls[i]
		if q := s.shardOf(s.Hash(c.Key)).queueOf(c); q != nil && q.keepsFor(w) {
			q.poke(nowNS)
		}
	}
}

// goAway takes out one whose turn has not come, and reports whether it still waited. All its shards are locked.
func (s *takes) goAway(w *waiter, nowNS int64) bool {
	q := w.queue
	if w.With != nil {
		s.waits.Part(w)
	} else if q == nil {
		return false
	} else if next := s.waits.HandOver(w); next != nil {
		q.replace(w, next)
	} else {
		first := q.First() == w
		s.leave(w, nowNS)
		q.spoil()
		if first && len(q.Waiters) > 0 {
			q.poke(nowNS)
		}
	}
	s.waits.Leave(w)
	return true
}

// expire is what a waiter's timer calls at its deadline.
func (s *takes) expire(w *waiter) {
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
func (s *takes) refuse(w *waiter, nowNS int64) bool {
	r, waited := w.Request, false
	paid := prepaid{store: s.shards, shard: s.shardOf(s.Hash(w.Calls[0].Key))}
	err := paid.run(w.locks, nowNS, func() error {
		if waited = waited || s.goAway(w, nowNS); !waited {
			return nil
		}
		r.Taken = store.Taken{}
		if _, err := s.waits.Refresh(w); err != nil {
			return err
		}
		t, _ := s.begin(r)
		defer s.end(t)
		a := w.Access
		a.NowNS = nowNS
		r.Terms.Mode = store.DontWait
		defer func() { r.Terms.Mode = store.Wait }()
		return t.decide(a, &paid, turn{})
	})
	if waited {
		r.Err = err
		w.Waker.Wake()
	}
	return waited
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited. With nil its caller
// has gone: it is not answered, and its Waker is not woken. With ErrRefused it is answered as a call that does not wait, and with
// another error it is answered with that.
func (s *takes) Leave(r *store.TakeRequest, why error) bool {
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
	if !s.goAway(w, now) {
		return false
	}
	if why != nil {
		r.Taken, r.Err = store.Taken{}, why
		w.Waker.Wake()
	}
	return true
}
