package memory

// keepOthers has those with later tickets leave the other states of a call alone until it has waited for the one that binds. Else a call
// of several limits, all of which others wait for, may never pass. A state is kept idle for no longer than it takes to earn the call's
// cost again: so a call that waits for a slow limit does not stop a fast one, and whoever waits keeps no more from others than he asks
// for. Of two limits the slower is kept, so the call passes at the faster's next moment.
func (w *waiter) keepOthers(binding *call, nowNS int64, waitNS uint64, cost int64) {
	for i := range w.asked.calls {
		c := &w.asked.calls[i]
		q := c.sh.queueOf(c)
		earns := c.Limit.EarnsNS(cost * c.times)
		if c == binding || q == nil || waitNS > earns || q.keeps(nowNS) && q.kept.Ticket < w.Ticket {
			continue
		}
		q.kept, q.keptUntil = w, int64(laterNS(nowNS, int64(waitNS)))
		q.keptUntil = int64(laterNS(q.keptUntil, int64(min(earns, timerLatenessNS))))
	}
}

// timerLatenessNS is how late a timer may be, for those who wait for two of them.
const timerLatenessNS = 2e6

// keeps reports whether the first leaves the state alone for another.
func (q *queue) keeps(nowNS int64) bool {
	if q.kept == nil {
		return false
	}
	if q.kept.queue == nil || q.kept.queue == q || q.keptUntil <= nowNS {
		q.kept = nil
		q.seenNS = max(q.seenNS, min(nowNS, q.keptUntil)) // nobody takes in what was idle
		return false
	}
	return len(q.Waiters) == 0 || q.kept.Ticket < q.First().Ticket
}
