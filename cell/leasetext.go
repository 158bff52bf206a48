package cell

import (
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
		for _, word := range l.Name {
			for shift := 60; shift >= 0; shift -= 4 {
				b = append(b, hexDigits[word>>shift&15])
			}
		}
	}
	return b
}

const hexDigits = "0123456789abcdef"

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
	id, text, found := strings.Cut(text, ":")
	end, text, found2 := strings.Cut(text, ":")
	cost, text, more := strings.Cut(text, ":")
	r.bad = r.bad || !found || !found2
	l.ID, l.EndNS, l.Cost = r.digits(id, MaxLeaseID), r.digits(end, latestEnd), int64(r.digits(cost, mostUsed))
	take := func(tag byte) (value string, found bool) {
		if !more || text == "" || text[0] != tag {
			return "", false
		}
		value, text, more = strings.Cut(text[1:], ":")
		return value, true
	}
	if value, found := take('t'); found {
		l.TakenNS = r.digits(value, math.MaxInt64)
		r.bad = r.bad || l.TakenNS == 0
	}
	if value, found := take('b'); found {
		l.Bound = true
		r.bad = r.bad || value != ""
	}
	if value, found := take('n'); found {
		l.Name = r.hex(value)
		r.bad = r.bad || l.Name == [2]uint64{}
	} else if value, found := take('k'); found {
		l.Link, l.Name = true, r.hex(value)
		r.bad = r.bad || l.Cost != 0
	}
	r.bad = r.bad || more
	return l
}

// hex reads 32 digits.
func (r *stateReader) hex(text string) (name [2]uint64) {
	if len(text) != 32 {
		r.bad = true
		return name
	}
	for i := range text {
		digit := strings.IndexByte(hexDigits, text[i])
		r.bad = r.bad || digit < 0
		name[i/16] = name[i/16]<<4 | uint64(digit)&15
	}
	return name
}
