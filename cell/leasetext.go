package cell

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

func (r leases) appendText(b []byte) []byte {
	b = append(b, " leases="...)
	first := true
	for l := range r.each {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(strconv.AppendUint(b, l.ID, 10), ':')
		b = append(strconv.AppendUint(b, l.EndNS, 10), ':')
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

func (*held) read(r *stateReader, _ *Limit) (st State) {
	text := r.field("leases")
	if text == "" || r.bad {
		return st
	}
	n := strings.Count(text, ",") + 1
	if r.bad = n > MaxLeases; r.bad {
		return st
	}
	all := make([]Lease, 0, n)
	sum, last := uint64(0), uint64(0)
	for range n {
		var one string
		one, text, _ = strings.Cut(text, ",")
		l := r.lease(one)
		sum += uint64(l.Cost)
		if r.bad = r.bad || sum > mostUsed || l.EndNS < last; r.bad {
			return st
		}
		all, last = append(all, l), l.EndNS
	}
	to := leases{&st}
	to.fit(n)
	to.refill(all)
	return st
}

func (r *stateReader) lease(text string) (l Lease) {
	const tags = "tbnk" // in this order; a name or a link's comes last
	parts := strings.Split(text, ":")
	if r.bad = r.bad || len(parts) < 3; r.bad {
		return l
	}
	l.ID, l.EndNS, l.Cost = r.digits(parts[0], MaxLeaseID), r.digits(parts[1], latestEnd), int64(r.digits(parts[2], mostUsed))
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
func (r *stateReader) hex(text string) (name [2]uint64) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 16 || text != strings.ToLower(text) {
		r.bad = true
		return name
	}
	return pieceOf(b)
}
