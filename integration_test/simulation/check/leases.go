package check

import (
	"cmp"
	"fmt"
	"slices"
)

// Leases checks limits of what is in flight: never are more held than the limit says, nobody is denied while there is room, a repeat
// with an ID gets the lease again, and each grant under a key has a higher id than all before it.
func Leases(h History) (faults []string) {
	for key, calls := range h.byKey((*Call).ofLease) {
		leases := leasesOf(calls, h.Losses)
		for _, fault := range []string{tooManyHeld(leases), tooFewHeld(calls, leases, h), grantedLate(calls, leases, h),
			givenTwice(leases, h.Losses), idsGrow(calls, h.Losses)} {
			if fault != "" {
				faults = append(faults, fmt.Sprintf("key %s: %s", key, fault))
			}
		}
		if len(leases) > 0 && leases[0].Limit.Capacity() > 1 {
			continue // one who waits for less passes one who waits for more
		}
		faults = append(faults, outOfOrder(key, calls, h.ArrivesNS)...)
	}
	return faults
}

func (c *Call) ofLease() bool { return c.Kind == Acquire || c.Kind == Release || c.Kind == Renew }

// held is a lease that was granted, or may have been.
type held struct {
	Call
	id     int64 // 0: nobody was told
	sureNS int64 // it was held until then, unless its loss was allowed
	mayNS  int64 // it was over then
	gone   int64 // the event at which it had been released; 0: it was not
	goneNS int64 // when that was
}

// leasesOf returns the leases under a key, in the order of the answers that told of them. A lease is surely held from that answer until its
// caller releases it, its time may be over, its connection may have ended, or it may be forgotten.
func leasesOf(calls []Call, losses []Loss) (leases []held) {
	for _, c := range calls {
		if c.Kind != Acquire || !c.Granted() && !c.mayCount() {
			continue
		}
		h := held{Call: c, sureNS: c.FromNS + c.Limit.PeriodNS, mayNS: 1 << 62}
		if c.Granted() {
			h.id, h.mayNS = c.Answer[7], c.ToNS+c.Limit.PeriodNS
			h.end(calls, losses)
		} else {
			h.sureNS = 0
		}
		if c.BoundNS > 0 {
			h.sureNS = min(h.sureNS, c.BoundNS)
		}
		if c.UnboundNS > 0 {
			h.mayNS = min(h.mayNS, c.UnboundNS)
		}
		for _, loss := range losses {
			if loss.Ended >= c.Began {
				h.sureNS = min(h.sureNS, loss.FromNS)
			}
		}
		leases = append(leases, h)
	}
	slices.SortStableFunc(leases, func(a, b held) int { return cmp.Compare(a.Ended, b.Ended) })
	return leases
}

// end finds when a lease ends, by what was asked of it. A loss may forget that it was released.
func (h *held) end(calls []Call, losses []Loss) {
	for _, c := range calls {
		switch answered := len(c.Answer) == 1; {
		case c.Lease != h.id || c.Kind == Acquire:
		case c.Kind == Release:
			h.sureNS = min(h.sureNS, c.FromNS)
			forgotten := slices.ContainsFunc(losses, func(l Loss) bool { return l.Ended >= c.Began })
			if answered && h.gone == 0 && !forgotten {
				h.gone, h.goneNS = c.Ended, c.ToNS
			}
		case answered && c.Answer[0] == 1:
			h.sureNS, h.mayNS = c.FromNS+c.WaitNS, c.ToNS+c.WaitNS
		case !answered:
			h.sureNS, h.mayNS = min(h.sureNS, c.FromNS+c.WaitNS), 1<<62
		}
	}
}

func tooManyHeld(leases []held) string {
	type edge struct{ atNS, change int64 }
	var edges []edge
	seen := map[int64]bool{}
	for _, l := range leases {
		if l.id != 0 && !seen[l.id] && l.sureNS > l.ToNS {
			edges = append(edges, edge{l.ToNS, l.Cost}, edge{l.sureNS, -l.Cost})
		}
		seen[l.id] = true
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.atNS, b.atNS), cmp.Compare(a.change, b.change)) // ends before beginnings
	})
	now := int64(0)
	for _, e := range edges {
		if most := leases[0].Limit.Capacity(); now+e.change > most {
			return fmt.Sprintf("%d are held at %d, and the limit is %d", now+e.change, e.atNS, most)
		}
		now += e.change
	}
	return ""
}

// tooFewHeld finds a call that was denied though there was room. A call that waits was denied at its end.
func tooFewHeld(calls []Call, leases []held, h History) string {
	for _, c := range calls {
		if c.Kind != Acquire || !c.denied() {
			continue
		}
		atNS := min(c.FromNS+c.WaitNS, c.ToNS)
		room := roomFor(&c, leases, func(l *held) bool {
			released := l.gone > 0 && (l.gone < c.Began || c.Waits && h.WakesNS > 0 && l.goneNS+h.WakesNS < atNS)
			return released || l.mayNS+h.LastsNS < atNS
		})
		// Whoever comes later is denied as if those who wait had taken already. Where each is woken, of two who wait one is granted.
		for _, o := range calls {
			waits := o.Waits && !o.Granted() && o.Began != c.Began && o.Began <= c.Ended && o.Ended >= c.Began
			if waits && (!c.Waits || h.WakesNS == 0 || !o.denied()) {
				room -= o.Cost
			}
			// Whose wait an operator ends is denied while one before it has no answer, whatever that takes.
			if c.Waits && c.ToNS < c.FromNS+c.WaitNS && o.Waits && o.Granted() && o.Began < c.Began && o.Ended > c.Began {
				room = 0
			}
		}
		if c.Cost <= room {
			return fmt.Sprintf("%s was denied at event %d, though there was room for %d", c.Text, c.Ended, room)
		}
	}
	return ""
}

// grantedLate finds one who waited though there was room: at the end of a wait celld looks once more, so nobody is denied by that.
func grantedLate(calls []Call, leases []held, h History) string {
	for _, c := range calls {
		sinceNS := c.ToNS - h.WakesNS
		if c.Kind != Acquire || !c.Waits || !c.Granted() || !c.First || h.WakesNS == 0 || sinceNS < c.FromNS+h.ArrivesNS {
			continue // one behind others may not have been looked at yet
		}
		room := roomFor(&c, leases, func(l *held) bool {
			return l.id == c.Answer[7] || l.gone > 0 && l.goneNS < sinceNS || l.mayNS+h.LastsNS < sinceNS
		})
		if c.Cost <= room {
			return fmt.Sprintf("%s was granted at event %d, though there had been room for %d since %d", c.Text, c.Ended, room, sinceNS)
		}
	}
	return ""
}

// roomFor is how much is left for a call at least. over says which leases are surely over, or its own.
func roomFor(c *Call, leases []held, over func(*held) bool) int64 {
	room, seen := c.Limit.Capacity(), map[int64]bool{}
	for i := range leases {
		if l := &leases[i]; l.Began <= c.Ended && !over(l) && !seen[l.id] {
			room -= l.Cost
			seen[l.id] = l.id != 0
		}
	}
	return room
}

// givenTwice finds a repeat that was given a lease of its own though the first was still held.
func givenTwice(leases []held, losses []Loss) string {
	for _, a := range leases {
		for _, b := range leases {
			if a.ID != "" && a.ID == b.ID && a.id != 0 && b.id != 0 && a.id != b.id && a.Ended < b.Began && b.ToNS < a.sureNS &&
				!lost(losses, a.Began, b.Ended) {
				return fmt.Sprintf("ID %s was given lease %d at event %d, and %d at %d", a.ID, a.id, a.Ended, b.id, b.Ended)
			}
		}
	}
	return ""
}

// idsGrow leaves out repeats with an ID: they may be told of a lease that was granted long before.
func idsGrow(calls []Call, losses []Loss) string {
	repeats := func(c Call) bool {
		return c.ID != "" && slices.ContainsFunc(calls, func(o Call) bool { return o.ID == c.ID && o.Began < c.Began })
	}
	for _, a := range calls {
		for _, b := range calls {
			if a.Kind == Acquire && b.Kind == Acquire && a.Granted() && b.Granted() && a.Ended < b.Began && a.Answer[7] >= b.Answer[7] &&
				!repeats(b) && !lost(losses, a.Began, b.Ended) {
				return fmt.Sprintf("id %d was granted at event %d, and id %d before it, at %d", b.Answer[7], b.Ended, a.Answer[7], a.Ended)
			}
		}
	}
	return ""
}
