package cell

import (
	"iter"
	"math"
	"sort"
	"strconv"
)

// A file gets only the new end of a long log, in parts. Whole logs of 10,000 calls took 86 KB of file for each call, and one connection
// with appendfsync always got 1,000 answers a second. Parts take 660 bytes a call, and the connection gets 4,700, as many as with gcra.
// The file need not say that old calls are gone: they leave the log by time alone, and the reader of the file knows the time.

// upTo is how many entries have at most this sum. The sum may lie before all of them.
func (c calls) upTo(sum uint64) int {
	if int64(sum-c.st.B) <= 0 {
		return 0
	}
	return sort.Search(c.n(), func(i int) bool { return c.sum(i)-c.st.B > sum-c.st.B })
}

// partCalls is the most calls in a part. A log of no more calls is written as a whole each time.
const partCalls = 64

// Told says what the Parts so far have told a copy of a log. The zero value means that there is no copy to add to.
type Told struct {
	known bool   // the copy is complete,
	parts bool   // and in parts:
	part  uint32 // the number of the part that goes on
	sum   uint64 // of all costs before that part
	after uint64 // a time before that part, and after all calls before it
}

// Shift adds ns to its instants, as Limit.Shift does to those of the log.
func (t Told) Shift(ns int64) Told {
	t.after = ShiftInstant(t.after, ns)
	return t
}

// Known reports that parts can be added to the copy. If not, remove what the copy holds of an earlier log first.
func (t Told) Known() bool { return t.known }

// Part is a piece of a log: the calls that follow an instant, or all of them.
type Part struct {
	Whole  bool
	Number uint32 // names a piece; it is used again when the calls of the piece no longer count
	after  uint64
	from   int // of the calls
	to     int
}

// Parts yields what a copy lacks: the last part anew, and those that follow. A log that never held more than 64 calls is one whole Part.
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

// Tell returns what a copy that stood at t holds after its Parts. For algorithms other than Log it is the zero Told.
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

// nextPart is the number of the part after this one. A part has 64 calls, and its first may be the last of the part before. The ring holds
// all calls that count, so there are enough numbers: none is used again while its part still counts.
func (c calls) nextPart(number uint32) uint32 {
	return (number + 1) % uint32(c.capacity()/(partCalls-1)+3)
}

// AppendPart appends a part as text. AppendState writes a whole one. Any other part names an instant, in Unix nanoseconds, and all calls
// after it.
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

// ParsePart reads a part that is not whole. The state holds its calls. They follow afterNS, in Unix ns.
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

// Join replaces the calls of a log after an instant, in Unix ns, by the calls of a part. It returns false, and changes nothing, if the
// sum of the costs would be over 2^53.
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
	if last := more.n() - 1; last >= 0 { // calls that no longer count are not merged with those that do
		gone := c.firstAfter(more.time(last), uint64(l.PeriodNS))
		c.drop(gone)
		n -= gone
	}
	all := n + more.n()
	if excess := all - max(int(l.Count), c.capacity(), more.n()); excess > 0 { // Force adds calls to a full log
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
	st.BlockedNS, st.AtFull = part.BlockedNS, part.AtFull
	return true
}
