package memory_test

import (
	"fmt"
	"math"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory/memtest"

	"pgregory.net/rapid"
)

// granted is a call that passed.
type granted struct {
	run   int // of changingBound.runs
	atNS  int64
	cost  int64
	share float64 // of the capacity then
}

// run is a time in which a key goes by limits of one state. It begins with the first call after the change.
type run struct {
	fromNS int64
	limit  cell.Limit
}

// refills is how many times over a limit may be full again within a span: a key admits its capacity once, and as much again
// as flows back.
func refills(l *cell.Limit, ns int64) float64 {
	ceil := func(a, b int64) int64 { return (a + b - 1) / b }
	switch {
	case l.Algo == cell.GCRA:
		return float64(ns) / float64(fullNS(l))
	case l.Algo == cell.Log:
		return float64(ns / l.PeriodNS)
	case l.Buckets > 0: // it touches so many sub-windows
		n := int64(l.Buckets)
		return float64(ceil(ceil(ns, l.PeriodNS/n)+1, n) - 1)
	case l.Algo == cell.Slide:
		return float64(ns) / float64(l.PeriodNS)
	}
	return float64(ceil(ns, l.PeriodNS)) // so many edges
}

// fullNS is the longest that a key without debts takes to be full again.
func fullNS(l *cell.Limit) int64 {
	switch {
	case l.Algo == cell.GCRA:
		return (l.PeriodNS + l.Count - 1) / l.Count * l.Burst
	case l.Algo == cell.Slide && l.Buckets == 0:
		return 2 * l.PeriodNS
	}
	return l.PeriodNS
}

// longestWaitNS is what a key that is used up waits for a cost.
func longestWaitNS(l *cell.Limit, cost int64) int64 {
	if l.Algo == cell.GCRA {
		return fullNS(l) / l.Burst * cost
	}
	return fullNS(l)
}

// changingBound is the log of what was admitted.
type changingBound struct {
	*changing
	runs    []run
	granted []granted
}

// ask notes what was granted, and when a change took effect. Limits of one state are one run, but those of a gcra, whose refill
// is a sum over time anyway.
func (b *changingBound) ask(cost int64, mode cell.Mode, upTo bool) {
	l := b.limits[0].literal
	if n := len(b.runs); n == 0 || b.runs[n-1].limit.Shape != l.Shape || l.Algo == cell.GCRA && b.runs[n-1].limit != l {
		b.runs = append(b.runs, run{b.nowNS, l})
	}
	if a := b.changing.ask(cost, mode, upTo, "key")[0]; a.Granted > 0 && mode == cell.Take {
		b.granted = append(b.granted, granted{len(b.runs) - 1, b.nowNS, a.Granted, float64(a.Granted) / float64(l.Capacity())})
	}
}

// check looks at each span from one call that passed to another. What was admitted in it, as a share of the capacity at the time,
// is 1 at most and what flows back under each limit in its time. So a change refills nothing, and where limits are full after
// the same time, no span admits more than under the larger of them alone. Logs keep calls as they are, not shares: it is
// the largest count that they do not pass.
func (b *changingBound) check() {
	largest := int64(0)
	for i := range b.granted {
		largest = max(largest, int64(math.Round(float64(b.granted[i].cost)/b.granted[i].share)))
	}
	for i := range b.granted {
		first, sum := &b.granted[i], 0.0
		for j := i; j < len(b.granted); j++ {
			last := &b.granted[j]
			if len(b.runs) == 1 && b.runs[0].limit.Algo == cell.Log {
				sum += float64(last.cost) / float64(largest)
			} else {
				sum += last.share
			}
			bound := 1.0
			for k := first.run; k <= last.run; k++ {
				from, to := max(first.atNS, b.runs[k].fromNS), last.atNS
				if k < last.run {
					to = b.runs[k+1].fromNS
				}
				bound += refills(&b.runs[k].limit, to-from)
			}
			if sum > bound+1e-6 {
				b.fail("%.4f times the capacity passes from %d µs to %d µs, more than %.4f", sum, (first.atNS-t0)/1000,
					(last.atNS-t0)/1000, bound)
			}
		}
	}
}

// P3: a key that takes all that it can get, under limits that change among two or three. They share one state, as literals that
// alternate, or each has its own, as a policy that becomes something else.
func TestAChangeAdmitsNoMoreThanTheLargerLimit(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind string) {
		b := &changingBound{changing: newChanging(t)}
		period := drawPeriod(t)
		limits := []string{drawLiteral(t, period, kind)}
		name, oneSlot := "p", rapid.Bool().Draw(t, "one slot")
		if oneSlot && rapid.Bool().Draw(t, "literals") {
			name = ""
		}
		slots := map[cell.Shape]bool{memtest.MustParse(t, limits[0]).Shape: true}
		for range rapid.IntRange(1, 2).Draw(t, "more limits") {
			another := ""
			if oneSlot {
				another = drawLiteral(t, period, kind)
			} else {
				another = drawLiteral(t, period, rapid.SampledFrom(alike(kind, changingKinds)).Draw(t, "kind"))
				if slot := memtest.MustParse(t, another).Shape; slots[slot] {
					continue
				} else {
					slots[slot] = true
				}
			}
			limits = append(limits, another)
		}
		b.add(name, "", limits[0])
		for range rapid.IntRange(2, 12).Draw(t, "calls") {
			if rapid.Bool().Draw(t, "changes") {
				b.change(0, rapid.SampledFrom(limits).Draw(t, "to"))
			}
			switch rapid.IntRange(0, 3).Draw(t, "call") {
			case 0, 1:
				b.ask(b.limits[0].literal.Capacity(), cell.Take, true)
			case 2:
				b.ask(1, cell.Take, false)
			case 3:
				b.ask(b.limits[0].literal.Capacity(), cell.Take, false)
			}
			b.drawPass(t)
		}
		b.ask(b.limits[0].literal.Capacity(), cell.Take, true)
		b.check()
	})
}

// Two literals of one state that take as long to be full, called alternately, admit no more in a second than the larger burst
// and the larger rate. Of others each call is a change, and what one has used flows back at the rate of the other: a key
// has one state, and whoever asks must not wait longer than their own limit says.
func TestAlternatingLiteralsThatFillAlikeGainsNothing(t *testing.T) {
	for _, test := range []struct {
		slow, fast string
		cost, most int64
	}{
		{"10/1s,burst=100", "100/1s,burst=1000", 50, 1100},
		{"10/1s", "1000/1s", 5, 2000},
		{"10/1s,algo=window", "1000/1s,algo=window", 5, 2000},
		{"10/1s,algo=slide", "1000/1s,algo=slide", 5, 2000},
		{"10/1s,algo=log", "1000/1s,algo=log", 5, 1000},
	} {
		for _, upTo := range []bool{false, true} {
			t.Run(fmt.Sprint(test.slow, " and ", test.fast, " up to ", upTo), func(t *testing.T) {
				c := newChanging(t)
				c.add("", "", test.slow)
				var sum int64
				for range 400 {
					c.change(0, test.slow)
					sum += c.ask(test.cost, cell.Take, upTo, "key")[0].Granted
					c.change(0, test.fast)
					sum += c.ask(c.limits[0].literal.Capacity(), cell.Take, true, "key")[0].Granted
					c.pass(second / 400)
				}
				if sum > test.most {
					t.Errorf("%d are admitted in 1 s, more than %d", sum, test.most)
				}
			})
		}
	}
}

// P4 and P5: a change leaves no larger share free than there was, and nobody waits longer than for a key that is used up. Only a log
// whose count is another keeps its calls, of which there may be fewer than the new count.
func TestAChangeNeitherRefillsNorLocks(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind string) {
		c := newChanging(t)
		period := drawPeriod(t)
		name := rapid.SampledFrom([]string{"p", ""}).Draw(t, "name")
		c.add(name, "", drawLiteral(t, period, kind))
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			c.ask(c.drawCost(t), cell.Take, rapid.Bool().Draw(t, "up to"), "key")
			c.drawPass(t)
		}
		old := c.limits[0].literal
		was := c.peek(1, "key").each[0]
		free := float64(was.Remaining) / float64(was.Limit)
		switch {
		case old.Algo == cell.GCRA:
			free = 1 - float64(was.ResetAfterNS)/float64(fullNS(&old))
		case old.Algo == cell.Slide && old.Buckets == 0 && was.ResetAfterNS > 0: // less than one more
			free = math.Min(1, float64(was.Remaining+1)/float64(was.Limit))
		}
		if name != "" && rapid.Bool().Draw(t, "another kind") {
			kind = rapid.SampledFrom(alike(kind, changingKinds)).Draw(t, "kind")
		}
		c.change(0, drawLiteral(t, period, kind))
		l := c.limits[0].literal
		cost := c.drawCost(t)
		a := c.take(cost, "key")
		if is := a.each[0]; (l.Algo != cell.Log || l.Shape != old.Shape) && float64(is.Remaining+a.Granted)/float64(is.Limit) > free+1e-6 {
			c.fail("%d of %d are free, and before the change a share of %.4f", is.Remaining+a.Granted, is.Limit, free)
		}
		if a.Limited && a.RetryAfterNS != cell.Never && a.RetryAfterNS > uint64(longestWaitNS(&l, cost)) {
			c.fail("waits %d ns, and %d for a key that is used up", a.RetryAfterNS, longestWaitNS(&l, cost))
		}
		if a.ResetAfterNS > uint64(fullNS(&l)) {
			c.fail("full in %d ns, and a key that is used up in %d", a.ResetAfterNS, fullNS(&l))
		}
		c.pass(int64(a.ResetAfterNS))
		if a := c.take(l.Capacity(), "key"); a.Limited {
			c.fail("is limited when it should be full")
		}
	})
}

// However much is forced and given back between changes, nothing is below zero, no more is given than was asked for,
// and a key is full when it was told to be.
func TestForceAndGiveBetweenChangesEnd(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind string) {
		c, change := drawChanging(t, kind)
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			if rapid.IntRange(0, 2).Draw(t, "changes") == 0 {
				change()
			}
			switch cost := c.drawCost(t); rapid.IntRange(0, 3).Draw(t, "call") {
			case 0:
				c.ask(cost, cell.Force, false, "key")
			case 1:
				call := store.Call{Limit: &c.limits[0].literal}
				if name := c.limits[0].policy; name != "" {
					call.Policy = c.store.PolicyNamed(name).Limits[0]
				}
				given, err := c.store.Give([]byte("key"), call.Limit, call.Policy, cost, memtest.At(c.nowNS))
				if c.note("key give %d: %d", cost, given); err != nil || given < 0 || given > cost {
					c.fail("gives %d, %v", given, err)
				}
			default:
				c.ask(cost, cell.Take, false, "key")
			}
			c.drawPass(t)
		}
		a := c.take(1, "key")
		for i := range c.limits {
			if d := a.each[i]; d.Remaining < 0 || d.Remaining > d.Limit {
				c.fail("%d of %d are left", d.Remaining, d.Limit)
			}
		}
		wait := a.ResetAfterNS
		if a.Limited && a.RetryAfterNS != cell.Never {
			wait = max(wait, a.RetryAfterNS)
		}
		c.pass(int64(wait))
		all := int64(math.MaxInt64)
		for i := range c.limits {
			all = min(all, c.limits[i].literal.Capacity())
		}
		if a := c.take(all, "key"); a.Limited {
			c.fail("is limited when it should be full")
		}
	})
}
