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
	run  int // of changingBound.runs
	atNS int64
	cost int64
}

// run is a time in which a key goes by limits of one state. It begins with the first call after the change.
type run struct {
	fromNS int64
	limit  cell.Limit
	most   int64 // the largest capacity of its limits
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
		b.runs = append(b.runs, run{b.nowNS, l, 0})
	}
	last := &b.runs[len(b.runs)-1]
	last.most = max(last.most, l.Capacity())
	if a := b.changing.ask(cost, mode, upTo, "key")[0]; a.Granted > 0 && mode == cell.Take {
		b.granted = append(b.granted, granted{len(b.runs) - 1, b.nowNS, a.Granted})
	}
}

// check looks at each span from one call that passed to another. What was admitted in it is at most the largest capacity, and what flows
// back under each limit in its time: of a bucket at its rate, of others as often as the largest is full again. So a change refills
// nothing, and no span admits more than under the largest of them alone.
func (b *changingBound) check() {
	for i := range b.granted {
		first, sum, largest := &b.granted[i], 0.0, 0.0
		for j := i; j < len(b.granted); j++ {
			last := &b.granted[j]
			sum += float64(last.cost)
			for k := first.run; k <= last.run; k++ {
				largest = max(largest, float64(b.runs[k].most))
			}
			bound := largest
			for k := first.run; k <= last.run; k++ {
				from, to := max(first.atNS, b.runs[k].fromNS), last.atNS
				if k < last.run {
					to = b.runs[k+1].fromNS
				}
				l, full := &b.runs[k].limit, largest
				if l.Algo == cell.GCRA {
					full = float64(l.Capacity())
				}
				bound += refills(l, to-from) * full
			}
			if sum > bound+1e-6 {
				b.fail("%.0f pass from %d µs to %d µs, more than %.4f", sum, (first.atNS-t0)/1000, (last.atNS-t0)/1000, bound)
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

// Two literals of one state, called alternately, admit no more in a second than the larger burst and the larger rate.
func TestAlternatingLiteralsGainNothing(t *testing.T) {
	for _, test := range []struct {
		slow, fast string
		cost, most int64
	}{
		{"10/1s,burst=100", "100/1s,burst=1000", 50, 1100},
		{"10/1s,burst=1000", "100/1s,burst=10", 50, 1100},
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

// P4: after a change remains what the new limit has, less what was used; less by a fraction of a call for a bucket, whose debt is rounded
// up to whole ns. Then the key is full when it was told to be.
func TestAChangeKeepsTheNumber(t *testing.T) {
	eachKind(t, func(t *rapid.T, kind string) {
		c := newChanging(t)
		period := drawPeriod(t)
		name := rapid.SampledFrom([]string{"p", ""}).Draw(t, "name")
		c.add(name, "", drawLiteral(t, period, kind))
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			c.ask(c.drawCost(t), cell.Take, rapid.Bool().Draw(t, "up to"), "key")
			c.drawPass(t)
		}
		was := c.peek(1, "key").each[0]
		if name != "" && rapid.Bool().Draw(t, "another kind") {
			kind = rapid.SampledFrom(alike(kind, changingKinds)).Draw(t, "kind")
		}
		c.change(0, drawLiteral(t, period, kind))
		l := c.limits[0].literal
		a := c.take(c.drawCost(t), "key")
		is := a.each[0].Remaining + a.Granted
		want := max(0, a.each[0].Limit-(was.Limit-was.Remaining))
		if is > want || is < want-1 || is < want && l.Algo != cell.GCRA {
			c.fail("%d of %d are free, want %d, as %d were used", is, a.each[0].Limit, want, was.Limit-was.Remaining)
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
