package memory

import (
	"math"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
)

// serve lets the waiters take whose moment has come.
func (s *takes) serve(q *shard.Line) {
	for s.serveSome(q) {
	}
}

// serveSome serves a few, all under the same locks, and reports whether there are more to look at.
func (s *takes) serveSome(q *shard.Line) (more bool) {
	now := s.now()
	q.Sh.Lock(now)
	w := q.First()
	q.Rang()
	q.Sh.Unlock()
	if w == nil {
		return false
	}
	paid := shard.Prepaid{Store: s.Shards, Shard: q.Sh}
	locks := w.Locks
	err := paid.Run(locks, now, func() (err error) {
		more = false
		for range shard.PerLock {
			if w = q.First(); w == nil {
				return nil
			}
			if more = w.Locks != locks; more {
				return nil
			}
			if more, err = s.serveFirst(q, now, &paid); !more {
				return err
			}
		}
		return nil
	})
	if err != nil { // there is no room
		s.LockAll(w.Locks, now)
		defer s.UnlockAll(w.Locks)
		if w.Line != nil {
			s.tell(w, err, now)
		}
		return true
	}
	return more
}

// serveFirst lets the first of a line take, if its moment has come, and reports whether the next must be looked at. All its shards are
// locked. The error is ErrNoRoom.
func (s *takes) serveFirst(q *shard.Line, nowNS int64, paid *shard.Prepaid) (next bool, err error) {
	w := q.First()
	if _, err := s.waits.Refresh(w); err != nil {
		s.tell(w, err, nowNS)
		return true, nil
	}
	if q.Keeps(nowNS) {
		q.SetTimer(q.KeptUntil)
		return false, nil
	}
	t, _ := s.begin(w.Request)
	defer s.end(t)
	at := nowNS
	if c := &t.calls[0]; len(t.calls) == 1 && q.Is(c.Call) {
		if at = s.momentNS(c, w); c.carried {
			at = nowNS
		} else if at > nowNS {
			q.SetTimer(at)
			return false, nil
		} else if at > w.DeadlineNS {
			return false, nil // it is about to be refused
		}
	}
	q.Quiet = true
	a := w.Access
	a.NowNS = at
	err = t.decide(a, paid, caller{waiter: w})
	q.Quiet = false
	switch err {
	case shard.ErrNoRoom:
		return false, err
	case errWaits:
		return w.Line != q, nil
	}
	s.tell(w, err, at)
	return true, nil
}

// momentNS is when the first of a line, a call of one limit, passes, or may pass as a lease flows back.
func (s *takes) momentNS(c *call, w *shard.Waiter) int64 {
	from := max(w.Access.NowNS, w.Line.NotBeforeNS)
	r := c.Rule(s.Set, from)
	for r != nil && r.Pause && r.UntilNS > from {
		from = r.UntilNS
		r = c.Rule(s.Set, from)
	}
	switch c.carried = false; {
	case r != nil && r.Pause:
		return math.MaxInt64
	case r != nil || c.Limit.Shadow:
		return from
	}
	c.n, c.e = c.sh.Meet(c.hash, c.Key, store.Access{NowNS: from, NoTouch: true})
	if c.e != nil && !c.e.HoldsLimits() {
		return from
	}
	c.findEntry()
	c.fetch(from)
	wait := c.Limit.Forecast(&c.st, c.sh.TimeOf(c.Limit, from), w.Cost)
	if wait == cell.Never {
		return from
	}
	return max(from, min(from+int64(min(wait, uint64(math.MaxInt64-1-from))), c.nextExpiryNS()))
}
