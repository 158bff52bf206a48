package cell

import (
	"iter"
	"math"
	"sort"
	"strconv"
)

// A long log is copied by what has changed at its end. One of 10,000 calls that was written whole for each call, with
// appendfsync always and one connection, had 1,000 calls a second answered, of 86 KB in the file each. This way it is 4,700, of
// 660 bytes, as many as with gcra. Calls leave a log by time alone, which who copies it knows as well: all that there is to tell of
// is what is new.

// upTo is how many entries there are up to such a sum, which may be before them all.
func (c calls) upTo(sum uint64) int {
	if int64(sum-c.st.B) <= 0 {
		return 0
	}
	return sort.Search(c.n(), func(i int) bool { return c.sum(i)-c.st.B > sum-c.st.B })
}

// partCalls is how many calls a part has at most, and how long a log may be to be told as a whole each time.
const partCalls = 64

// Told says what a copy of a log has, as Parts has told it. The zero value: nothing of it that could be added to.
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

// Known reports that the copy can be added to: where it cannot, what it may have of an earlier log must go first.
func (t Told) Known() bool { return t.known }

// Part is a piece of a log: what follows its calls up to an instant, if it has such; or all of it.
type Part struct {
	Whole  bool
	Number uint32 // a name for a piece, which is used again when its calls no longer count
	after  uint64
	from   int // of the calls
	to     int
}

// Parts tells what a copy lacks: the part that the last one told ended in, anew, and those that follow. A log that is short,
// and has been, is told as a whole.
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

// Tell returns what a copy has when it was told the Parts of t.
func (l *Limit) Tell(st *State, t Told) Told {
	if l.Algo != Log {
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

// nextPart is the number of the part after one. A part is of 64 calls, of which the first may be the last of the one before
// it. So those that count, which are no more than the ring holds, stand in no more parts than there are numbers.
func (c calls) nextPart(number uint32) uint32 {
	return (number + 1) % uint32(c.capacity()/(partCalls-1)+3)
}

// AppendPart appends a part as text. A whole one is as AppendState writes it; others say after which instant theirs are all
// calls there are, in Unix nanoseconds.
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

// ParsePart reads a part that is not whole: the state has its calls.
func ParsePart(text string) (l Limit, st State, afterNS int64, err error) {
	r := stateReader{rest: text}
	l = r.limit()
	after := r.number("after", math.MaxInt64)
	if l.Algo != Log || r.bad {
		return Limit{}, State{}, 0, errState
	}
	r.calls(&st)
	c := calls{&st}
	if r.end(&st); r.bad || c.n() > 0 && c.time(0) <= after {
		return Limit{}, State{}, 0, errState
	}
	return l, st, int64(after), nil
}

// Join makes a part's calls those of a log after an instant, in the place of what it has had. It reports false, and changes
// nothing, where they would come to more than can be counted.
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
