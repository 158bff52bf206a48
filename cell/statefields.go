package cell

import (
	"strconv"
	"strings"
)

func appendField(b []byte, name string, n uint64) []byte {
	b = append(append(append(b, ' '), name...), '=')
	return strconv.AppendUint(b, n, 10)
}

func appendBlocked(b []byte, st *State) []byte {
	if st.BlockedNS == 0 {
		return b
	}
	return appendField(b, "blocked", st.BlockedNS)
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
