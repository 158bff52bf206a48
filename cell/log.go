package cell

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"celld/cell/lease"
)

// log remembers the calls of the last period. It is the one exact algorithm: no span of a period lets through more than the count.
// State.Ring holds the calls in the order of time, two words for each: the time, and the sum of all costs up to this call, its own
// included. With these sums, a binary search finds what must leave before a call passes. State.A is first<<32 | n, the place of the
// oldest call and the number of calls. State.B is the sum before the oldest.
//
// Calls at the same nanosecond are one entry. There are never more than count entries, unless the count was lowered. When Force adds one
// more, the two oldest become one at the time of the younger. That changes no decision: the entries after the oldest add up to the count,
// so nothing passes before the younger leaves. Only after a Give, or where the count is raised then, does the log deny for longer.
type log struct{ plain }

func (*log) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	c := calls{st}
	live := c.firstAfter(now, uint64(l.PeriodNS))
	before := c.sumBefore(live)
	sum := c.sumBefore(c.n()) - before
	taken, waits := l.counts(sum, cost, mode)
	if taken {
		c.drop(live)
		if more := min(uint64(cost), mostUsed-sum); more > 0 {
			c.push(now, more, l.Count)
		}
		live, before = 0, st.B
		sum = c.sumBefore(c.n()) - before
	}
	o := l.used(sum, c.end(uint64(l.PeriodNS)), now)
	if waits {
		last := c.firstWithSum(live, sum+uint64(cost)-uint64(l.Count))
		o.retryNS = c.time(last) + uint64(l.PeriodNS) - now
	}
	return o
}

func (*log) holds(l *Limit, st *State, nowNS, cost int64) bool {
	c := calls{st}
	sum := c.sumBefore(c.n()) - c.sumBefore(c.firstAfter(uint64(nowNS), uint64(l.PeriodNS)))
	return sum+uint64(cost) <= MaxCost
}

// calls reads a log's ring.
type calls struct{ st *State }

func (c calls) n() int        { return int(uint32(c.st.A)) }
func (c calls) place() int    { return int(c.st.A >> 32) }
func (c calls) capacity() int { return len(c.st.Ring) / 2 }

func (c calls) set(place, n int) { c.st.A = uint64(place)<<32 | uint64(n) }

// at is the place of entry i in the ring. Entry 0 is the oldest.
func (c calls) at(i int) int {
	place := c.place() + i
	if capacity := c.capacity(); place >= capacity {
		place -= capacity
	}
	return 2 * place
}

func (c calls) time(i int) uint64 { return c.st.Ring[c.at(i)] }
func (c calls) sum(i int) uint64  { return c.st.Ring[c.at(i)+1] }

// sumBefore is the sum of all costs before the entry i.
func (c calls) sumBefore(i int) uint64 {
	if i == 0 {
		return c.st.B
	}
	return c.sum(i - 1)
}

// firstAfter is the first entry that still counts. It is nearly always the oldest, or one of a few after it.
func (c calls) firstAfter(now, period uint64) int {
	return firstOf(0, c.n(), func(i int) bool { return c.time(i)+period > now })
}

// firstWithSum is the first entry at which the costs from entry i on reach sum. The sums may wrap, their differences do not.
func (c calls) firstWithSum(i int, sum uint64) int {
	before := c.sumBefore(i)
	return firstOf(i, c.n()-1, func(i int) bool { return c.sum(i)-before >= sum })
}

// firstOf returns the first number from low on for which is returns true, or high. is must stay true from there on. It tries
// the numbers near low first, which sort.Search does not: the answer is nearly always one of them.
func firstOf(low, high int, is func(int) bool) int {
	for start, step := low, low; low < high && step < high; step = 2*step + 1 - start {
		if is(step) {
			high = step
		} else {
			low = step + 1
		}
	}
	return low + sort.Search(high-low, func(i int) bool { return is(low + i) })
}

// drop removes the oldest i entries.
func (c calls) drop(i int) {
	if i == 0 {
		return
	}
	c.st.B = c.sumBefore(i)
	n := c.n() - i
	if n == 0 {
		c.set(0, 0)
		return
	}
	c.set(c.at(i)/2, n)
}

func (c calls) push(now, cost uint64, most int64) {
	n := c.n()
	sum := c.sumBefore(n) + cost
	if n > 0 && c.time(n-1) >= now {
		c.st.Ring[c.at(n-1)+1] = sum
		return
	}
	if int64(n) >= most || n == c.capacity() {
		c.mergeOldest(1)
		n--
	}
	c.set(c.place(), n+1)
	last := c.at(n)
	c.st.Ring[last], c.st.Ring[last+1] = now, sum
}

// mergeOldest merges the oldest i+1 entries into one, at the time of the youngest of them.
func (c calls) mergeOldest(i int) { c.set(c.at(i)/2, c.n()-i) }

// fit doubles the ring when it is full of calls that still count, up to count entries.
func (*log) fit(l *Limit, st *State, nowNS, _ int64) (words int) {
	c := calls{st}
	if c.n() < c.capacity() {
		return 0
	}
	c.drop(c.firstAfter(uint64(nowNS), uint64(l.PeriodNS)))
	n := c.n()
	if n < c.capacity() || int64(n) >= l.Count {
		return 0
	}
	return c.grow(min(max(4, 2*n), int(l.Count)))
}

// grow replaces the ring by one with room for capacity calls, and returns how many words it is longer.
func (c calls) grow(capacity int) (words int) {
	ring := make([]uint64, 2*capacity)
	for i := range c.n() {
		ring[2*i], ring[2*i+1] = c.time(i), c.sum(i)
	}
	words = len(ring) - len(c.st.Ring)
	c.st.Ring = ring
	c.set(0, c.n())
	return words
}

func (*log) fits(l *Limit, st State) bool {
	c := calls{&st}
	return c.n() < c.capacity() || int64(c.n()) >= l.Count && c.n() > 0
}

func (*log) give(l *Limit, st *State, nowNS, n int64) int64 {
	c := calls{st}
	c.drop(c.firstAfter(uint64(nowNS), uint64(l.PeriodNS)))
	left := uint64(n)
	for k := c.n(); k > 0 && left > 0; k-- {
		cost := c.sum(k-1) - c.sumBefore(k-1)
		if cost > left {
			st.Ring[c.at(k-1)+1] -= left
			left = 0
			break
		}
		left -= cost
		c.set(c.place(), k-1)
	}
	return n - int64(left)
}

func (*log) end(a, b uint64, ring []uint64, period uint64) uint64 {
	return calls{&State{A: a, B: b, Ring: ring}}.end(period)
}

// end is when the last entry stops counting.
func (c calls) end(period uint64) uint64 {
	if c.n() == 0 {
		return 0
	}
	return c.time(c.n()-1) + period
}

// takenNS is the time of the newest entry.
func (*log) takenNS(_ *Limit, st *State, _ int64) uint64 { return calls{st}.end(0) }

// giveBack writes the log anew, without what is given back. A call that Force has made part of the one after it stays: else the end of its
// lease would depend on what else has ended.
func (*log) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	slices.SortFunc(from, func(a, b lease.Lease) int { return cmp.Compare(a.TakenNS, b.TakenNS) })
	c := calls{st}
	c.drop(c.firstAfter(uint64(nowNS), uint64(l.PeriodNS)))
	kept, was, is := 0, st.B, st.B
	for i := range c.n() {
		at, sum := c.time(i), c.sum(i)
		cost := sum - was
		was = sum
		for len(from) > 0 && from[0].TakenNS <= at {
			if from[0].TakenNS == at {
				cost -= min(cost, uint64(from[0].Cost))
			}
			from = from[1:]
		}
		if cost > 0 {
			is += cost
			place := c.at(kept)
			st.Ring[place], st.Ring[place+1] = at, is
			kept++
		}
	}
	if kept == 0 {
		c.set(0, 0)
	} else {
		c.set(c.place(), kept)
	}
}

func (*log) shift(_ Shape, st *State, ns int64) {
	c := calls{st}
	for i := range c.n() {
		at := c.at(i)
		st.Ring[at] = ShiftInstant(st.Ring[at], ns)
	}
}

func (*log) appendText(b []byte, _ Shape, st State) []byte {
	c := calls{&st}
	return c.appendText(b, 0, c.n())
}

func (c calls) appendText(b []byte, from, to int) []byte {
	b = append(b, " calls="...)
	for i := from; i < to; i++ {
		if i == from {
			b = strconv.AppendUint(b, c.time(i), 10)
		} else {
			b = strconv.AppendUint(append(b, ",+"...), c.time(i)-c.time(i-1), 10)
		}
		b = strconv.AppendUint(append(b, ':'), c.sum(i)-c.sumBefore(i), 10)
	}
	return b
}

func (*log) read(r *stateReader, _ *Limit) (st State) {
	text := r.field("calls")
	if text == "" {
		return st
	}
	n := strings.Count(text, ",") + 1 // more than the count, if that was lowered
	st.Ring = make([]uint64, 2*n)
	calls{&st}.set(0, n)
	var at, sum uint64
	for i := range n {
		var call string
		call, text, _ = strings.Cut(text, ",")
		when, cost, found := strings.Cut(call, ":")
		if i > 0 {
			var later bool
			when, later = strings.CutPrefix(when, "+")
			r.bad = r.bad || !later
		}
		wait := r.digits(when, math.MaxInt64)
		spent := r.digits(cost, mostUsed)
		at, sum = at+wait, sum+spent
		if r.bad = r.bad || !found || at > math.MaxInt64 || spent == 0 || sum > mostUsed; r.bad {
			return st
		}
		st.Ring[2*i], st.Ring[2*i+1] = at, sum
	}
	return st
}
