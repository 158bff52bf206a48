package cell

import (
	"errors"
	"strconv"
	"strings"
)

// AppendState appends a state that l has left as text, for tools and files: l without its block and shadow, and the state, in Unix
// nanoseconds.
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
// Where calls are booked ahead, until= and used= are of the last window, and before= is what was used in the window before it. The
// sub-windows of a slide begin with the oldest. A call is its time, or its distance from the call before it, and its cost. lease.Set's
// AppendText says what a lease is. The companion of a state is leases= after that state's limit. blocked= comes last, if the key is
// blocked, or blocked-at-full= if that is by block-at=full.
func (l *Limit) AppendState(b []byte, st *State) []byte {
	b = l.appendLimit(b)
	return appendBlocked(l.kind().appendText(b, l.Shape, *st), st)
}

func (l *Limit) appendLimit(b []byte) []byte {
	plain := Limit{Shape: l.Shape, Params: l.Params}
	return plain.AppendText(append(b, "limit="...))
}

var errState = errors.New("not the state of a limit")

// ParseState reads what AppendState writes.
func ParseState(text string) (l Limit, st State, err error) {
	r := stateReader{rest: text}
	if l = r.limit(); r.bad {
		return Limit{}, State{}, errState
	}
	l.Leases = !l.HoldsLeases() && strings.HasPrefix(r.rest, "leases=")
	st = l.kind().read(&r, &l)
	if r.end(&st); r.bad {
		return Limit{}, State{}, errState
	}
	return l, st, nil
}

func (r *stateReader) limit() Limit {
	l, err := ParseLimit(r.field("limit"))
	r.bad = r.bad || err != nil || l != LimitOf(l.Shape, l.Params)
	return l
}

func appendField(b []byte, name string, n uint64) []byte {
	b = append(append(append(b, ' '), name...), '=')
	return strconv.AppendUint(b, n, 10)
}

func blockedName(atFull bool) string {
	if atFull {
		return "blocked-at-full"
	}
	return "blocked"
}

func appendBlocked(b []byte, st *State) []byte {
	if st.BlockedNS == 0 {
		return b
	}
	return appendField(b, blockedName(st.AtFull), st.BlockedNS)
}

// stateReader reads one field after another, and sets bad when one is wrong.
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

// end reads blocked= or blocked-at-full=, if it is there, and expects nothing after it.
func (r *stateReader) end(st *State) {
	if r.rest != "" {
		st.AtFull = strings.HasPrefix(r.rest, blockedName(true))
		st.BlockedNS = r.number(blockedName(st.AtFull), latestEnd)
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
