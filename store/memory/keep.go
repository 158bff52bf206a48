package memory

import "celld/store/memory/shard"

// keepOthers keeps the other states of a call from those with later tickets until it has waited for the one that binds. Otherwise a call
// of several limits, all of which others wait for, may never pass. A state is kept idle for no longer than it takes to earn the call's
// cost again: so a call that waits for a slow limit does not stop a fast one, and keeps no more from others than it asks for. Of two limits
// the slower is kept, so the call passes at the faster's next moment.
func (t *take) keepOthers(w *shard.Waiter, binding *call, waitNS uint64) {
	nowNS := t.a.NowNS
	for i := range t.calls {
		c := &t.calls[i]
		q := c.sh.LineOf(c.Call)
		earns := c.Limit.EarnsNS(c.total(t.cost))
		if c != binding && q != nil && waitNS <= earns {
			q.KeepFor(w, nowNS, waitNS, min(earns, timerLatenessNS))
		}
	}
}

// timerLatenessNS is how late a timer may be, for those who wait for two of them.
const timerLatenessNS = 2e6
