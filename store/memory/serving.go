package memory

import (
	"math"

	"celld/cell"
	"celld/store"
)

// serve has those take whose moment has come.
func (s *takes) serve(q *queue) {
	for s.serveSome(q) {
	}
}

// serveSome serves a few, all under the same locks, and reports whether there are more to look at.
func (s *takes) serveSome(q *queue) (more bool) {
	now := s.now()
	q.sh.lock(now)
	w := q.First()
	q.rang()
	q.sh.unlock()
	if w == nil {
		return false
	}
	paid := prepaid{store: s.shards, shard: q.sh}
	locks := w.locks
	err := paid.run(locks, now, func() (err error) {
		more = false
		for range perLock {
			if w = q.First(); w == nil {
				return nil
			}
			if more = w.locks != locks; more {
				return nil
			}
			if more, err = s.serveFirst(q, now, &paid); !more || err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // there is no room
		s.lockAll(w.locks, now)
		defer s.unlockAll(w.locks)
		if w.queue != nil {
			s.tell(w, err, now)
		}
		return true
	}
	return more
}

// serveFirst has the first of a queue take, if its moment has come, and reports whether the next is to be looked at. All its
// shards are locked. The error is errNoRoom.
func (s *takes) serveFirst(q *queue, nowNS int64, paid *prepaid) (next bool, err error) {
	w := q.First()
	if _, err := s.waits.Refresh(w); err != nil {
		s.tell(w, err, nowNS)
		return true, nil
	}
	if q.keeps(nowNS) {
		q.setTimer(q.keptUntil)
		return false, nil
	}
	t, _ := s.begin(w.Request)
	defer s.end(t)
	at := nowNS
	if c := &t.calls[0]; len(t.calls) == 1 && q.is(c.Call) {
		if at = s.momentNS(c, w); c.carried {
			at = nowNS
		} else if at > nowNS {
			q.setTimer(at)
			return false, nil
		} else if at > w.deadlineNS {
			return false, nil // it is about to be refused
		}
	}
	q.quiet = true
	a := w.Access
	a.NowNS = at
	err = t.decide(a, paid, turn{waiter: w})
	q.quiet = false
	switch err {
	case errNoRoom:
		return false, err
	case errWaits:
		return w.queue != q && len(q.Waiters) > 0, nil
	}
	s.tell(w, err, at)
	return true, nil
}

// momentNS is when a call of one limit passes, that is the first of its queue, or may pass as a lease flows back.
func (s *takes) momentNS(c *call, w *waiter) int64 {
	from := max(w.Access.NowNS, w.queue.seenNS)
	if c.carried = false; c.Limit.Shadow || s.Rule(c.Key, from) != nil {
		return from
	}
	c.n, c.e = c.sh.meet(c.hash, c.Key, store.Access{NowNS: from, NoTouch: true})
	if c.e != nil && !c.e.HoldsLimits() {
		return from
	}
	c.findTally()
	c.fetch(from)
	wait := c.Limit.Forecast(&c.st, c.sh.TimeOf(c.Limit, from), w.cost)
	if wait == cell.Never {
		return from
	}
	return max(from, min(from+int64(min(wait, uint64(math.MaxInt64-1-from))), c.nextDueNS()))
}
