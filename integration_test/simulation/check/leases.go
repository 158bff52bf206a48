package check

import (
	"fmt"
	"slices"
)

// Leases checks limits of what is in flight: never are more held than the limit says, and each grant under a key has a higher id than all
// before it. A lease is surely held from the answer that granted it until its caller releases it, its time may be over, or it may be
// forgotten.
func Leases(h History) (faults []string) {
	for key, calls := range h.byKey(func(c *Call) bool { return c.Kind == Acquire || c.Kind == Release }) {
		faults = append(faults, tooManyHeld(key, calls, h.Losses)...)
		faults = append(faults, idsGrow(key, calls, h.Losses)...)
	}
	return faults
}

func tooManyHeld(key string, calls []Call, losses []Loss) []string {
	type edge struct{ atNS, change int64 }
	var edges []edge
	most := int64(0)
	for _, c := range calls {
		if c.Kind != Acquire || !c.granted() {
			continue
		}
		l := c.Limit
		most = l.Capacity()
		ends := c.FromNS + l.PeriodNS
		for _, r := range calls {
			if r.Kind == Release && r.Lease == c.Answer[7] {
				ends = min(ends, r.FromNS)
			}
		}
		for _, loss := range losses {
			if loss.Ended >= c.Began {
				ends = min(ends, loss.FromNS)
			}
		}
		if c.BoundNS > 0 {
			ends = min(ends, c.BoundNS)
		}
		if ends > c.ToNS {
			edges = append(edges, edge{c.ToNS, c.Cost}, edge{ends, -c.Cost})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.atNS != b.atNS {
			return int(a.atNS - b.atNS)
		}
		return int(a.change - b.change) // ends before beginnings
	})
	held := int64(0)
	for _, e := range edges {
		if held += e.change; held > most {
			return []string{fmt.Sprintf("key %s: %d are held at %d, and the limit is %d", key, held, e.atNS, most)}
		}
	}
	return nil
}

func idsGrow(key string, calls []Call, losses []Loss) []string {
	for _, a := range calls {
		for _, b := range calls {
			if a.Kind == Acquire && b.Kind == Acquire && a.granted() && b.granted() && a.Ended < b.Began && a.Answer[7] >= b.Answer[7] &&
				!lost(losses, a.Began, b.Ended) {
				return []string{fmt.Sprintf("key %s: id %d was granted at event %d, and id %d before it, at %d", key, b.Answer[7], b.Ended,
					a.Answer[7], a.Ended)}
			}
		}
	}
	return nil
}
