package lease

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// AppendText appends the leases as text: each is its ID, its expiry and its cost, then t with when it was taken, b if it is bound, and n
// with its name; a link has k in place of n.
//
//	1763739000000000:1763739030000000000:1,7:1763739040000000000:2:b:n00000000000000000000000000000001
func (s Set) AppendText(b []byte) []byte {
	first := true
	for l := range s.each {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(strconv.AppendUint(b, l.ID, 10), ':')
		b = append(strconv.AppendUint(b, l.ExpiryNS, 10), ':')
		b = strconv.AppendInt(b, l.Cost, 10)
		if l.TakenNS != 0 {
			b = strconv.AppendUint(append(b, ":t"...), l.TakenNS, 10)
		}
		if l.Bound {
			b = append(b, ":b"...)
		}
		switch {
		case l.Link:
			b = append(b, ":k"...)
		case l.Name != [2]uint64{}:
			b = append(b, ":n"...)
		default:
			continue
		}
		b = hex.AppendEncode(b, appendPiece(make([]byte, 0, 16), l.Name))
	}
	return b
}

// Parse reads what AppendText writes into a Set that is empty, and reports whether it could. latestNS is the latest expiry that a lease may
// have, in Unix ns.
func (s Set) Parse(text string, latestNS uint64) bool {
	if text == "" {
		return true
	}
	n := strings.Count(text, ",") + 1
	if n > Max {
		return false
	}
	all := make([]Lease, 0, n)
	sum, last := uint64(0), uint64(0)
	for one := range strings.SplitSeq(text, ",") {
		r := reader{}
		l := r.lease(one, latestNS)
		sum += uint64(l.Cost)
		if r.bad || sum > mostSum || l.ExpiryNS < last {
			return false
		}
		all, last = append(all, l), l.ExpiryNS
	}
	s.Fit(n)
	s.refill(all)
	return true
}

// reader reads a lease, and sets bad where it is none.
type reader struct{ bad bool }

func (r *reader) lease(text string, latestNS uint64) (l Lease) {
	const tags = "tbnk" // in this order; a name or a link's comes last
	parts := strings.Split(text, ":")
	if r.bad = len(parts) < 3; r.bad {
		return l
	}
	l.ID, l.ExpiryNS, l.Cost = r.digits(parts[0], MaxID), r.digits(parts[1], latestNS), int64(r.digits(parts[2], mostCost))
	last := -1
	for _, part := range parts[3:] {
		value := part[min(1, len(part)):]
		tag := strings.Index(tags, part[:len(part)-len(value)])
		if part == "" || tag <= last || last == 2 {
			r.bad = true
			return l
		}
		last = tag
		switch tags[tag] {
		case 't':
			l.TakenNS = r.digits(value, math.MaxInt64)
			r.bad = r.bad || l.TakenNS == 0
		case 'b':
			l.Bound = true
			r.bad = r.bad || value != ""
		case 'n':
			l.Name = r.hex(value)
			r.bad = r.bad || l.Name == [2]uint64{}
		case 'k':
			l.Link, l.Name = true, r.hex(value)
			r.bad = r.bad || l.Cost != 0
		}
	}
	return l
}

// hex reads 32 digits.
func (r *reader) hex(text string) (name [2]uint64) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 16 || text != strings.ToLower(text) {
		r.bad = true
		return name
	}
	return pieceOf(b)
}

// digits reads a number as it is written: without sign and leading zeros.
func (r *reader) digits(text string, most uint64) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most || text[0] == '0' && len(text) > 1 {
		r.bad = true
	}
	return n
}
