package cell

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// AppendState appends a state that l has left as text, for tools and files: l without its block and shadow, and what the
// state says, in Unix nanoseconds.
//
//	limit=30/1m,burst=16 tat=1763739000000000000
//	limit=100/1h,algo=window until=1763740800000000000 used=5
//	limit=100/1h,algo=window until=1763744400000000000 used=7 before=100
//	limit=100/1m,algo=slide start=1763739000000000000 used=5 before=3
//	limit=100/1m,algo=slide,buckets=3 newest=88186950 used=2,0,5
//	limit=100/1m,algo=log calls=1763739000000000000:1,+1500:2
//	limit=20/30s,algo=conc leases=1763739000000000:1763739030000000000:1
//	limit=100/1s,burst=1,warmup=5s free=1763739000000000000 warmth=2500000000
//
// A window has before= where calls are booked ahead: until= and used= are of the last window then, and before= is what was used in
// the one before it. The sub-windows of a slide are told from the oldest on. A call is its time, or how long after the one before it
// was, and its cost. A lease is its ID, its end and its cost, and, where it has them, t with when it was taken, b if it is bound, and
// n with its name. A link has k in place of n. The companion of a state has leases= after that state's limit. blocked=, where a key is,
// comes last.
func (l *Limit) AppendState(b []byte, st *State) []byte {
	b = l.appendLimit(b)
	field := func(name string, n uint64) {
		b = append(append(append(b, ' '), name...), '=')
		b = strconv.AppendUint(b, n, 10)
	}
	switch {
	case l.HoldsLeases():
		b = leases{st}.appendText(b)
	case l.Algo == GCRA:
		field("tat", st.A)
	case l.Algo == Window:
		field("until", st.A)
		field("used", st.B&math.MaxUint32)
		if before := st.B >> 32; before > 0 {
			field("before", before)
		}
	case l.Algo == Warmup:
		field("free", st.A)
		field("warmth", st.B)
	case l.Algo == Log:
		c := calls{st}
		b = c.appendText(b, 0, c.n())
	case l.Buckets > 0:
		field("newest", st.A)
		b = append(b, " used="...)
		for i := uint64(1); i <= uint64(l.Buckets); i++ {
			if i > 1 {
				b = append(b, ',')
			}
			if len(st.Ring) == 0 {
				b = append(b, '0')
			} else {
				b = strconv.AppendUint(b, st.Ring[(st.A+i)%uint64(l.Buckets)], 10)
			}
		}
	default:
		field("start", st.A)
		field("used", st.B>>32)
		field("before", st.B&math.MaxUint32)
	}
	return appendBlocked(b, st)
}

func (l *Limit) appendLimit(b []byte) []byte {
	plain := Limit{Shape: l.Shape, Params: l.Params}
	return plain.AppendText(append(b, "limit="...))
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

func appendBlocked(b []byte, st *State) []byte {
	if st.BlockedNS == 0 {
		return b
	}
	return strconv.AppendUint(append(b, " blocked="...), st.BlockedNS, 10)
}

// latestEnd is the latest instant at which something ends that has begun before the year 2262.
const latestEnd = math.MaxInt64 + 2*MaxPeriodNS

var errState = errors.New("not the state of a limit")

// ParseState reads what AppendState writes.
func ParseState(text string) (l Limit, st State, err error) {
	r := stateReader{rest: text}
	if l = r.limit(); r.bad {
		return Limit{}, State{}, errState
	}
	switch {
	case l.Algo == Conc || strings.HasPrefix(r.rest, "leases="):
		l.Leases = l.Algo != Conc
		r.leases(&st)
	case l.Algo == GCRA:
		st.A = r.number("tat", math.MaxUint64)
	case l.Algo == Window:
		st.A = r.number("until", latestEnd)
		st.B = min(r.number("used", mostUsed), math.MaxUint32) // earlier versions counted on
		if strings.HasPrefix(r.rest, "before=") {
			before := r.number("before", mostBefore)
			r.bad = r.bad || before == 0 || st.B == 0
			st.B |= before << 32
		}
	case l.Algo == Warmup:
		st.A = r.number("free", math.MaxUint64-MaxWarmupNS)
		st.B = r.number("warmth", uint64(l.warmupNS()))
	case l.Algo == Log:
		r.calls(&st)
	case l.Buckets > 0:
		r.buckets(&l, &st)
	default:
		st.A = r.number("start", math.MaxInt64)
		cur := r.number("used", math.MaxUint32)
		st.B = cur<<32 | r.number("before", math.MaxUint32)
	}
	if r.end(&st); r.bad {
		return Limit{}, State{}, errState
	}
	return l, st, nil
}

// stateReader reads one field after the other, and sets bad when one is wrong.
type stateReader struct {
	rest string
	bad  bool
}

func (r *stateReader) field(name string) string {
	word, rest, more := strings.Cut(r.rest, " ")
	value, found := strings.CutPrefix(word, name+"=")
	r.rest = rest
	r.bad = r.bad || !found || more && rest == ""
	return value
}

func (r *stateReader) limit() Limit {
	l, err := ParseLimit(r.field("limit"))
	r.bad = r.bad || err != nil || l.BlockNS != 0 || l.Shadow
	return l
}

// end reads blocked=, if it is there, and expects nothing after it.
func (r *stateReader) end(st *State) {
	if r.rest != "" {
		st.BlockedNS = r.number("blocked", latestEnd)
		r.bad = r.bad || st.BlockedNS == 0
	}
	r.bad = r.bad || r.rest != ""
}

func (r *stateReader) number(name string, most uint64) uint64 {
	return r.digits(r.field(name), most)
}

// digits reads a number as it is written: without sign and leading zeros.
func (r *stateReader) digits(text string, most uint64) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most || text[0] == '+' || text[0] == '0' && len(text) > 1 {
		r.bad = true
		return 0
	}
	return n
}

func (r *stateReader) buckets(l *Limit, st *State) {
	st.A = r.number("newest", l.bucketAt(math.MaxInt64))
	counters := strings.SplitN(r.field("used"), ",", int(l.Buckets)+1)
	if len(counters) != int(l.Buckets) {
		r.bad = true
		return
	}
	st.Ring = make([]uint64, l.Buckets)
	for i, text := range counters {
		n := r.digits(text, mostUsed)
		st.Ring[(st.A+1+uint64(i))%uint64(l.Buckets)] = n
		st.B += n
	}
	r.bad = r.bad || st.B > mostUsed
}

func (r *stateReader) calls(st *State) {
	text := r.field("calls")
	if text == "" {
		return
	}
	n := strings.Count(text, ",") + 1 // may be more than the count, which was lowered then
	st.Ring = make([]uint64, 2*n)
	calls{st}.set(0, n)
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
			return
		}
		st.Ring[2*i], st.Ring[2*i+1] = at, sum
	}
}
