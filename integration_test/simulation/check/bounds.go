package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"celld/cell"
)

// Bounds checks calls whose instants nobody knows: those that an engine decides, and those that wait. So this does not look for an order.
// It says whether more has passed in some span than the limit allows, and whether a call was denied though all that may have been counted
// leaves room for it. docs/explanation/what-happens-when.md allows the first after a loss. Limits that warm up or block are not for it.
func Bounds(h History) (faults []string) {
	for key, calls := range h.byKey(func(c *Call) bool { return c.Bounded }) {
		for i := 0; !h.Evicts && i < 1+len(calls[0].Others); i++ {
			faults = append(faults, tooMany(key, byLimit(calls, i), &h)...)
			faults = append(faults, tooManyInWindow(key, byLimit(calls, i), h.Losses)...)
		}
		if h.AheadNS == 0 && len(calls[0].Others) == 0 { // else others may hold what is left, or another limit denies
			faults = append(faults, tooFew(key, calls, &h)...)
		}
		faults = append(faults, outOfOrder(key, calls, h.ArrivesNS)...)
	}
	return faults
}

// byLimit are calls as one of their limits sees them.
func byLimit(calls []Call, i int) []Call {
	if i == 0 {
		return calls
	}
	calls = slices.Clone(calls)
	for j := range calls {
		calls[j].Limit = calls[j].Others[i-1]
	}
	return calls
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

// counts reports whether the limit counts calls in spans of its period, which a bucket does not.
func (c *Call) counts() bool { return c.Kind != Throttle && c.Limit.Algo != cell.GCRA }

// most is what may pass of a limit in a span, and in which unit: ns of a bucket, or calls.
func (c *Call) most(spanNS int64) (most, unit int64) {
	if !c.counts() {
		interval, tolerance := c.bucket()
		return tolerance + spanNS, interval
	}
	spans := spanNS/c.Limit.PeriodNS + 2 // windows that such a span touches
	if c.Limit.Algo == cell.Log {
		spans--
	}
	return c.Limit.Capacity() * spans, 1
}

func (c *Call) denied() bool { return len(c.Answer) > 0 && c.Answer[0] == 1 && c.Kind != Del }

// mayCount reports whether the call may have been counted.
func (c *Call) mayCount() bool {
	return c.Kind != Peek && c.Kind != Del && (c.Granted() || c.Answer == nil && (c.Error == "" || c.Maybe))
}

// latestNS is when a call was decided at the latest that a later one finds. An engine that was paused decides afterwards on what nobody
// waits for any more.
func (c *Call) latestNS(later *Call) int64 {
	if c.Answer == nil {
		return max(c.ToNS, later.ToNS)
	}
	return c.ToNS
}

func tooMany(key string, calls []Call, h *History) []string {
	var granted []Call
	losses := slices.Clone(h.Losses)
	for _, c := range calls {
		switch {
		case c.Kind == Del && c.Answer != nil:
			loss := Loss{Began: c.Began, Ended: c.Ended}
			for _, o := range calls { // which other servers may decide by units that they have taken before
				if h.AheadNS > 0 && o.FromNS <= c.ToNS+h.AheadNS {
					loss.Ended = max(loss.Ended, o.Began)
				}
			}
			losses = append(losses, loss)
		case c.Kind == Del:
			losses = append(losses, Loss{Began: c.Began, Ended: math.MaxInt64})
		case c.Granted():
			c.ToNS += c.aheadNS()
			c.FromNS += max(0, c.aheadNS()-1e6) // which was rounded up
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
			most, unit := c.most(c.ToNS - first.FromNS)
			used += c.Cost * unit
			began, ended = min(began, c.Began), max(ended, c.Ended)
			if lost(losses, began, ended) {
				break
			}
			if used > most {
				return []string{fmt.Sprintf("key %s: what passed between events %d and %d takes %d, and %d were there with %s",
					key, began, ended, used, most, c.Text)}
			}
		}
	}
	return nil
}

// tooManyInWindow says which window of the clock has let more pass than its count, of calls that surely were in it.
func tooManyInWindow(key string, calls []Call, losses []Loss) []string {
	type window struct{ used, began, ended int64 }
	windows := map[uint64]window{}
	for _, c := range calls {
		if c.Kind == Del {
			losses = append(slices.Clip(losses), Loss{Began: c.Began, Ended: math.MaxInt64})
		}
		if !c.counts() || !c.Limit.Aligned() || !c.Granted() || c.aheadNS() > 0 {
			continue
		}
		end := c.Limit.WholeNS(&cell.State{}, c.FromNS)
		if uint64(c.ToNS) >= end {
			continue
		}
		w, known := windows[end]
		if w.used += c.Cost; !known || c.Began < w.began {
			w.began = c.Began
		}
		w.ended = max(w.ended, c.Ended)
		if windows[end] = w; w.used > c.Limit.Capacity() && !lost(losses, w.began, w.ended) {
			return []string{fmt.Sprintf("key %s: between events %d and %d, %d pass in a window of %s", key, w.began, w.ended,
				w.used, c.Text)}
		}
	}
	return nil
}

func lost(losses []Loss, began, ended int64) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool { return l.Began <= ended && l.Ended >= began })
}

// deniedNS is for how long a key may be denied that was deleted by another process: docs/reference/engine.md.
const deniedNS = 1_100_000_000

// deletedNS is when the key was deleted last, so that a denied call finds nothing of what was decided before.
func (c *Call) deletedNS(calls []Call, losses []Loss) int64 {
	last := int64(math.MinInt64)
	for _, d := range calls {
		lost := slices.ContainsFunc(losses, func(l Loss) bool { return l.Ended >= d.Began })
		if d.Kind == Del && d.Answer != nil && !lost && d.ToNS+deniedNS < c.FromNS {
			last = max(last, d.FromNS)
		}
	}
	return last
}

func tooFew(key string, calls []Call, h *History) (faults []string) {
	for _, denied := range calls {
		if !denied.denied() {
			continue
		}
		fromNS := denied.FromNS
		if denied.Waits {
			fromNS += denied.WaitNS
		}
		if fromNS > denied.ToNS {
			continue // it was not to wait: celld stops, or its wait would be too long
		}
		if room, unit := denied.room(calls, fromNS, h); denied.Cost*unit <= room {
			faults = append(faults, fmt.Sprintf("key %s: %s was denied at event %d, though %d were left at least", key, denied.Text,
				denied.Ended, room))
		}
	}
	return faults
}

// taken is what a call may have taken of a bucket, and when.
type taken struct{ fromNS, latestNS, takesNS int64 }

// room is what others had left at least from an instant on until a call was denied, in some unit.
func (c *Call) room(calls []Call, fromNS int64, h *History) (room, unit int64) {
	deleted := c.deletedNS(calls, h.Losses)
	mayTake := func(o *Call) bool {
		// who comes later to the same line takes nothing before the end of the wait
		return !c.waitsBefore(o, h.ArrivesNS) &&
			(o.mayCount() || o.Waits) && o.Began != c.Began && o.Began <= c.Ended && o.latestNS(c) >= deleted
	}
	if c.counts() {
		spans := int64(1)
		if c.Limit.Algo == cell.Slide {
			spans = 2
		}
		room = c.Limit.Capacity()
		for _, o := range calls {
			if mayTake(&o) && o.latestNS(c)+o.aheadNS() >= fromNS-spans*c.Limit.PeriodNS {
				room -= o.Cost
			}
		}
		return room, 1
	}
	interval, tolerance := c.bucket()
	var may []taken
	for _, o := range calls {
		if mayTake(&o) {
			each, _ := o.bucket()
			may = append(may, taken{o.FromNS, o.latestNS(c), o.Cost * each})
		}
	}
	slices.SortFunc(may, func(a, b taken) int { return cmp.Compare(a.latestNS, b.latestNS) })
	later := make([]int64, len(may)+1) // what those take together that come from here on
	for i, t := range slices.Backward(may) {
		later[i] = later[i+1] + t.takesNS
	}
	most := int64(math.MinInt64) // the TAT that the key had at most
	for _, first := range may {
		i, _ := slices.BinarySearchFunc(may, first.fromNS, func(t taken, at int64) int { return cmp.Compare(t.latestNS, at) })
		most = max(most, first.latestNS+later[i])
	}
	return fromNS + tolerance - max(most, fromNS), interval
}

// waitsBefore reports whether two calls wait in the line of a server, and one has surely come before the other.
func (c *Call) waitsBefore(o *Call, arrivesNS int64) bool {
	return c.Waits && o.Waits && c.Server == o.Server && c.First && c.FromNS+arrivesNS < o.FromNS
}

// outOfOrder checks that who waits passes before those who surely came later.
func outOfOrder(key string, calls []Call, arrivesNS int64) []string {
	for _, a := range calls {
		for _, b := range calls {
			passed := a.Granted() && b.Granted() && a.Cost == b.Cost && a.ID == "" && b.ID == ""
			if passed && a.waitsBefore(&b, arrivesNS) && a.ToNS > b.ToNS+arrivesNS {
				return []string{fmt.Sprintf("key %s: %s of event %d had to wait until event %d, and that of event %d passed at %d", key,
					a.Text, a.Began, a.Ended, b.Began, b.Ended)}
			}
		}
	}
	return nil
}
