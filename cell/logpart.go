package cell

import (
	"iter"
	"math"
	"sort"
	"strconv"
)

// A file gets only the new end of a long log, in parts. Whole logs of 10,000 calls took 86 KB of file for each call, and one
// connection with appendfsync always got 1,000 answers a second. Parts take 660 bytes a call, and it gets 4,700, as many as
// with gcra. Old calls need not be told: they leave the log by time alone, and the reader of the file knows the time.

// upTo is how many entries have at most this sum. The sum may lie before all of them.
func (c calls) upTo(sum uint64) int {
	if int64(sum-c.st.B) <= 0 {
		return 0
	}
	return sort.Search(c.n(), func(i int) bool { return c.sum(i)-c.st.B > sum-c.st.B })
}

// partCalls is the most calls that a part has. A log of no more calls is told as a whole each time.
const partCalls = 64

// Told says what a copy of a log has been told by Parts. The zero value means that the copy has nothing to add to.
type Told struct {
	known bool   // it has all,
	parts bool   // and has it in parts:
	part  uint32 // the number of the one that goes on
	sum   uint64 // of all costs before that
	after uint64 // a time before that, and after all calls before it
}

// Shift adds ns to the instants in it, as Limit.Shift does to the log.
func (t Told) Shift(ns int64) Told {
	t.after = ShiftInstant(t.after, ns)
	return t
}

// Known reports that parts can be added to the copy. Otherwise what the copy has of an earlier log must go first.
func (t Told) Known() bool { return t.known }

// Part is a piece of a log: the calls that follow an instant, or all of them.
type Part struct {
	Whole  bool
	Number uint32 // a name for a piece, which is used again when its calls no longer count
	after  uint64
	from   int // of the calls
	to     int
}

// Parts yields what a copy lacks: the part that was told last, anew, and those that follow. A log that never had more than 64
// calls is told as a whole.
func (l *Limit) Parts(st *State, t Told) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		c := calls{st}
		n := c.n()
		p := Part{Number: t.part, after: t.after}
		switch {
		case t.parts:
			p.from = c.upTo(t.sum)
		case n <= partCalls:
			yield(Part{Whole: true, to: n})
			return
		}
		for {
			p.to = min(p.from+partCalls, n)
			if !yield(p) || p.to == n {
				return
			}
			p.Number, p.from, p.after = c.nextPart(p.Number), p.to, c.time(p.to-1)
		}
	}
}

// Tell returns what a copy has after it was told the Parts of t. Of algorithms other than Log it is the zero Told.
func (l *Limit) Tell(st *State, t Told) Told {
	if !l.KeepsCalls() {
		return Told{}
	}
	c := calls{st}
	t.known = true
	for p := range l.Parts(st, t) {
		if p.Whole {
			break
		}
		t = Told{known: true, parts: true, part: p.Number, sum: c.sumBefore(p.from), after: p.after}
		if p.to-p.from == partCalls { // the next one starts with its last call, with which another may become one
			t.part, t.sum, t.after = c.nextPart(p.Number), c.sumBefore(p.to-1), c.time(p.to-1)-1
		}
	}
	return t
}

// nextPart is the number of the part after one. A part has 64 calls, and its first may be the last of the part before. The
// ring holds all calls that count, so there are enough numbers that none is used again for a part that still counts.
func (c calls) nextPart(number uint32) uint32 {
	return (number + 1) % uint32(c.capacity()/(partCalls-1)+3)
}

// AppendPart appends a part as text. A whole one is what AppendState writes. Any other names an instant, in Unix nanoseconds,
// and all calls after it.
//
//	limit=10000/1m,algo=log after=1763739000000000000 calls=1763739000000000009:1,+1500:2
func (l *Limit) AppendPart(b []byte, st *State, p Part) []byte {
	if p.Whole {
		return l.AppendState(b, st)
	}
	b = l.appendLimit(b)
	b = strconv.AppendUint(append(b, " after="...), p.after, 10)
	b = calls{st}.appendText(b, p.from, p.to)
	return appendBlocked(b, st)
}

// ParsePart reads a part that is not whole. The state has its calls, and they follow afterNS, in Unix ns.
func ParsePart(text string) (l Limit, st State, afterNS int64, err error) {
	r := stateReader{rest: text}
	l = r.limit()
	after := r.number("after", math.MaxInt64)
	if l.Algo != Log || r.bad {
		return Limit{}, State{}, 0, errState
	}
	st = l.kind().read(&r, &l)
	c := calls{&st}
	if r.end(&st); r.bad || c.n() > 0 && c.time(0) <= after {
		return Limit{}, State{}, 0, errState
	}
	return l, st, int64(after), nil
}

// Join replaces the calls of a log after an instant, in Unix ns, by a part's calls. It returns false, and changes nothing, when
// the sum of the costs would be over 2^53.
func (l *Limit) Join(st, part *State, afterNS int64) bool {
	c, more := calls{st}, calls{part}
	n := c.n()
	for n > 0 && c.time(n-1) > uint64(afterNS) {
		n--
	}
	before := c.sumBefore(n)
	if before-st.B+more.sumBefore(more.n())-part.B > mostUsed {
		return false
	}
	c.set(c.place(), n)
	if last := more.n() - 1; last >= 0 { // what does not count any more is not merged with what does
		gone := c.firstAfter(more.time(last), uint64(l.PeriodNS))
		c.drop(gone)
		n -= gone
	}
	all := n + more.n()
	if excess := all - max(int(l.Count), c.capacity(), more.n()); excess > 0 { // what Force has added to a full log
		c.mergeOldest(excess)
		n, all = n-excess, all-excess
	}
	if all > c.capacity() {
		c.grow(max(all, 2*c.capacity()))
	}
	for i := range more.n() {
		c.set(c.place(), n+i+1)
		at := c.at(n + i)
		st.Ring[at], st.Ring[at+1] = more.time(i), before+more.sum(i)-part.B
	}
	st.BlockedNS = part.BlockedNS
	return true
}
