package memory

import (
	"time"

	"celld/store"
	"celld/store/memory/shard"
)

// tell ends a wait at nowNS. The request holds what was taken.
func (s *takes) tell(w *shard.Waiter, err error, nowNS int64) {
	s.leave(w, nowNS)
	if w.Request.Err = err; err != nil {
		w.Request.Taken = store.Taken{}
	}
	s.waits.Answer(w, w.Request)
}

// leave takes a waiter out of its line.
func (s *takes) leave(w *shard.Waiter, nowNS int64) {
	w.Line.Withdraw(w, nowNS)
	for i := 0; i < len(w.Calls) && len(w.Calls) > 1; i++ {
		c := &w.Calls[i]
		if q := s.ShardOf(s.Hash(c.Key)).LineOf(c); q != nil && q.KeepsFor(w) {
			q.Poke(nowNS)
		}
	}
}

// goAway takes out a waiter that has not been granted, and reports whether it still waited. All its shards are locked.
func (s *takes) goAway(w *shard.Waiter, nowNS int64) bool {
	q := w.Line
	if w.Leader == nil && q == nil {
		return false
	}
	switch next, alone := s.waits.StepOut(w); {
	case next != nil:
		q.Replace(w, next)
	case alone:
		first := q.First() == w
		s.leave(w, nowNS)
		q.Spoil()
		if first && len(q.Waiters) > 0 {
			q.Poke(nowNS)
		}
	}
	s.waits.Leave(w)
	return true
}

// expire is what a waiter's timer calls at its deadline.
func (s *takes) expire(w *shard.Waiter) {
	s.LockAll(w.Locks, 0)
	q, early := w.Line, w.DeadlineNS-s.now()
	if w.Leader != nil {
		q = w.Leader.Line
	}
	if q != nil && early > 0 {
		w.Timer.Reset(time.Duration(early))
	}
	s.UnlockAll(w.Locks)
	if q == nil || early > 0 {
		return
	}
	s.serve(q) // its moment may have come together with its deadline
	s.refuse(w, w.DeadlineNS)
}

// refuse answers a waiter as a call that does not wait.
func (s *takes) refuse(w *shard.Waiter, nowNS int64) bool {
	r, waited := w.Request, false
	paid := shard.Prepaid{Store: s.Shards, Shard: s.ShardOf(s.Hash(w.Calls[0].Key))}
	err := paid.Run(w.Locks, nowNS, func() error {
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
		return t.decide(a, &paid, caller{})
	})
	if waited {
		r.Err = err
		w.Waker.Wake()
	}
	return waited
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited. nil: its caller has
// gone, so it is not answered, and its Waker is not woken. ErrRefused: it is answered as a call that does not wait. Any other error is its
// answer.
func (s *takes) Leave(r *store.TakeRequest, why error) bool {
	w := s.waits.Find(r)
	if w == nil {
		return false
	}
	now := s.now()
	if why == store.ErrRefused {
		return s.refuse(w, now)
	}
	s.LockAll(w.Locks, now)
	defer s.UnlockAll(w.Locks)
	if !s.goAway(w, now) {
		return false
	}
	if why != nil {
		w.End(why)
	}
	return true
}
