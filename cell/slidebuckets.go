package cell

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"celld/cell/lease"
)

// buckets are slide with buckets=n. It cuts time into sub-windows of period/n, and sums the current one and the n-1 before it (Sentinel's
// LeapArray). Sub-windows are numbered from 1970 on. State.A is the number of the newest that has a call, State.B the sum.
// State.Ring has the counters: number i is at i mod n. A span of one period touches n+1 sub-windows, so up to twice the count
// may pass in it.
type buckets struct{ plain }

func (*buckets) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	c, now := countersOf(&l.Shape, st), uint64(nowNS)
	newest := c.newest(now)
	sum := c.sum(newest)
	taken, waits := l.counts(sum, cost, mode)
	if taken {
		c.roll(newest)
		more := min(uint64(cost), mostUsed-sum)
		*c.counter(0) += more
		st.B += more
		sum = st.B
	}
	o := l.used(sum, c.end(), now)
	if waits {
		o.retryNS = c.leave(newest, sum+uint64(cost)-uint64(l.Count)) - now
	}
	return o
}

func (*buckets) holds(l *Limit, st *State, nowNS, cost int64) bool {
	c := countersOf(&l.Shape, st)
	return c.sum(c.newest(uint64(nowNS)))+uint64(cost) <= MaxCost
}

// counters are the counters of a state. The age of a counter is how many sub-windows it is older than State.A: 0..n-1.
type counters struct {
	st        *State
	n, period uint64 // of them, and of all in ns
}

func countersOf(s *Shape, st *State) counters {
	return counters{st, uint64(s.Buckets), uint64(s.PeriodNS)}
}

// at is the number of the sub-window that an instant is in.
func (c counters) at(ns uint64) uint64 { return mulDiv(ns, c.n, c.period) }

// newest is the number of the newest sub-window. That may be ahead of now.
func (c counters) newest(now uint64) uint64 { return max(c.at(now), c.st.A) }

func (c counters) counter(age uint64) *uint64 {
	return &c.st.Ring[(c.st.A+c.n-age)%c.n]
}

// gone is when a counter stops counting, in Unix ns: at the start of the sub-window n later.
func (c counters) gone(age uint64) uint64 {
	return mulDivUp(c.st.A+c.n-age, c.period, c.n)
}

// live is how many counters still count when newest is the newest sub-window: those of ages below it.
func (c counters) live(newest uint64) uint64 { return c.n - min(c.n, newest-c.st.A) }

// sum is what was taken in the n sub-windows up to newest.
func (c counters) sum(newest uint64) uint64 {
	live, sum := c.live(newest), c.st.B
	if sum == 0 || live == 0 {
		return 0
	}
	for age := live; age < c.n; age++ {
		sum -= *c.counter(age)
	}
	return sum
}

// roll forgets the counters that no longer count.
func (c counters) roll(newest uint64) {
	for age := c.live(newest); age < c.n; age++ {
		counter := c.counter(age)
		c.st.B -= *counter
		*counter = 0
	}
	c.st.A = newest
}

// take removes up to n from a counter, and returns how much that was.
func (c counters) take(age, n uint64) uint64 {
	counter := c.counter(age)
	n = min(n, *counter)
	*counter -= n
	c.st.B -= n
	return n
}

// leave is when need will have left the sum, in Unix ns. need is at most the sum.
func (c counters) leave(newest, need uint64) uint64 {
	age := c.live(newest) - 1
	for ; age > 0; age-- {
		has := *c.counter(age)
		if has >= need {
			break
		}
		need -= has
	}
	return c.gone(age)
}

// end is when the newest counter with a call stops counting.
func (c counters) end() uint64 {
	if c.st.B == 0 {
		return 0
	}
	age := uint64(0)
	for *c.counter(age) == 0 {
		age++
	}
	return c.gone(age)
}

// turn moves the counters by so many sub-windows, negative ones into the past.
func (c counters) turn(by int64) {
	n, was := c.n, c.st.A
	if by < 0 {
		c.st.A -= min(uint64(-by), was)
	} else {
		c.st.A += min(uint64(by), max(was, c.at(math.MaxInt64))-was)
	}
	if ring := c.st.Ring; len(ring) > 0 { // the counter at was mod n is now at st.A mod n
		turn := (was%n + n - c.st.A%n) % n
		slices.Reverse(ring[:turn])
		slices.Reverse(ring[turn:])
		slices.Reverse(ring)
	}
}

// in is how many sub-windows ns are, rounded to the nearest. With rounding down, a clock that was 1 ns behind at each of n starts would
// free all.
func (c counters) in(ns int64) int64 {
	half := c.period / (2 * c.n)
	if ns < 0 {
		return -int64(c.at(uint64(-ns) + half))
	}
	return int64(c.at(uint64(ns) + half))
}

func (*buckets) fit(l *Limit, st *State, _, _ int64) (words int) {
	if len(st.Ring) > 0 {
		return 0
	}
	st.Ring = make([]uint64, l.Buckets)
	return len(st.Ring)
}

func (*buckets) fits(_ *Limit, st State) bool { return len(st.Ring) > 0 }

// whole is the end of the sub-window.
func (*buckets) whole(l *Limit, st *State, now uint64) uint64 {
	c := countersOf(&l.Shape, st)
	return mulDivUp(c.newest(now)+1, c.period, c.n)
}

func (*buckets) end(a, b uint64, ring []uint64, period uint64) uint64 {
	return counters{&State{A: a, B: b, Ring: ring}, uint64(len(ring)), period}.end()
}

func (*buckets) give(l *Limit, st *State, nowNS, n int64) int64 {
	c := countersOf(&l.Shape, st)
	newest := c.newest(uint64(nowNS))
	if c.sum(newest) == 0 {
		return 0
	}
	c.roll(newest)
	left := uint64(n)
	for age := uint64(0); age < c.n && left > 0; age++ {
		left -= c.take(age, left)
	}
	return n - int64(left)
}

// takenNS is not before the newest sub-window begins.
func (*buckets) takenNS(l *Limit, st *State, nowNS int64) uint64 {
	c := countersOf(&l.Shape, st)
	return max(uint64(nowNS), mulDivUp(st.A, c.period, c.n))
}

// giveBack gives to the sub-windows that still count.
func (*buckets) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	c := countersOf(&l.Shape, st)
	newest := c.newest(uint64(nowNS))
	if c.sum(newest) == 0 {
		return
	}
	c.roll(newest)
	for i := range from {
		if number := c.at(from[i].TakenNS); number <= newest && newest-number < c.n {
			c.take(newest-number, uint64(from[i].Cost))
		}
	}
}

func (*buckets) shift(s Shape, st *State, ns int64) {
	c := countersOf(&s, st)
	c.turn(c.in(ns))
}

func (*buckets) shiftBack(s Shape, st *State, ns int64) {
	c := countersOf(&s, st)
	c.turn(-c.in(ns))
}

func (*buckets) appendText(b []byte, s Shape, st State) []byte {
	b = append(appendField(b, "newest", st.A), " used="...)
	if len(st.Ring) == 0 {
		st.Ring = make([]uint64, s.Buckets)
	}
	c := countersOf(&s, &st)
	for age := range c.n {
		b = append(strconv.AppendUint(b, *c.counter(c.n - 1 - age), 10), ',')
	}
	return b[:len(b)-1]
}

func (*buckets) read(r *stateReader, l *Limit) (st State) {
	c := countersOf(&l.Shape, &st)
	st.A = r.number("newest", c.at(math.MaxInt64))
	texts := strings.SplitN(r.field("used"), ",", int(l.Buckets)+1)
	if len(texts) != int(l.Buckets) {
		r.bad = true
		return st
	}
	st.Ring = make([]uint64, l.Buckets)
	for i, text := range texts {
		n := r.digits(text, mostUsed)
		*c.counter(c.n - 1 - uint64(i)) = n
		st.B += n
	}
	r.bad = r.bad || st.B > mostUsed
	return st
}
