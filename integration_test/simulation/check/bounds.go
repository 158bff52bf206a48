package check

import (
	"fmt"
	"math"
	"slices"

	"celld/cell"
)

// Bounds checks calls of limits of GCRA whose instants nobody knows: those that an engine decides, and those that wait. So this does not
// look for an order. It says whether more has passed in some span than the limit allows, and whether a call was denied though
// all that may have been counted leaves room for it. docs/engine.md allows the first after a loss.
func Bounds(h History) (faults []string) {
	for key, calls := range h.byKey(func(c *Call) bool { return c.Bounded }) {
		faults = append(faults, tooMany(key, calls, h.Losses)...)
		faults = append(faults, tooFew(key, calls)...)
	}
	return faults
}

// bucket returns the limit of a call: the time that one cost takes to come back, and the most that may be used, in time.
func (c *Call) bucket() (intervalNS, toleranceNS int64) {
	l := c.Limit
	b := l.Bucket()
	if c.Kind == Throttle {
		var err error
		if b, err = cell.NewBucket(c.Burst[0], c.Burst[1], c.Burst[2]); err != nil {
			panic(err)
		}
	}
	_, one, err := b.Throttle(0, 1<<60, 1) // a key never seen: what one cost takes is what is left until it is full again
	if err != nil {
		panic(err)
	}
	return int64(one.ResetAfterNS), int64(one.ResetAfterNS) * b.Capacity()
}

func (c *Call) granted() bool { return len(c.Answer) > 0 && c.Answer[0] == 0 && c.Kind != Peek }
func (c *Call) denied() bool  { return len(c.Answer) > 0 && c.Answer[0] == 1 }

// mayCount reports whether the call may have been counted.
func (c *Call) mayCount() bool {
	return c.Kind != Peek && (c.granted() || c.Answer == nil && (c.Error == "" || c.Maybe))
}

// latestNS is when a call was decided at the latest that a later one finds. An engine that was paused decides afterwards on what nobody
// waits for any more.
func (c *Call) latestNS(later *Call) int64 {
	if c.Answer == nil {
		return max(c.ToNS, later.ToNS)
	}
	return c.ToNS
}

func tooMany(key string, calls []Call, losses []Loss) []string {
	var granted []Call
	for _, c := range calls {
		if c.granted() {
			granted = append(granted, c)
		}
	}
	slices.SortStableFunc(granted, func(a, b Call) int { return int(a.ToNS - b.ToNS) })
	for _, first := range granted {
		used, began, ended := int64(0), first.Began, first.Ended
		for _, c := range granted {
			if c.FromNS < first.FromNS {
				continue
			}
			interval, tolerance := c.bucket()
			used += c.Cost * interval
			began, ended = min(began, c.Began), max(ended, c.Ended)
			if lost(losses, began, ended) {
				break
			}
			if span := c.ToNS - first.FromNS; used > tolerance+span {
				return []string{fmt.Sprintf("key %s: what passed between events %d and %d takes %d ns, and %d were there with %s",
					key, began, ended, used, tolerance+span, c.Text)}
			}
		}
	}
	return nil
}

func lost(losses []Loss, began, ended int64) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool { return l.Began <= ended && l.Ended >= began })
}

func tooFew(key string, calls []Call) (faults []string) {
	for _, denied := range calls {
		if !denied.denied() {
			continue
		}
		_, tolerance := denied.bucket()
		interval, _ := denied.bucket()
		most := int64(math.MinInt64) // the TAT that the key had at most
		for _, first := range calls {
			if !first.mayCount() && !first.Waits || first.Began > denied.Ended {
				continue
			}
			tat := first.latestNS(&denied)
			for _, c := range calls {
				counts := c.mayCount() || c.Waits
				if counts && c.Began <= denied.Ended && c.latestNS(&denied) >= first.FromNS {
					each, _ := c.bucket()
					tat += c.Cost * each
				}
			}
			most = max(most, tat)
		}
		if room := denied.FromNS + tolerance - max(most, denied.FromNS); denied.Cost*interval <= room {
			faults = append(faults, fmt.Sprintf("key %s: %s was denied at event %d, though %d ns were left at least", key, denied.Text,
				denied.Ended, room))
		}
	}
	return faults
}
