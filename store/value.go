package store

import (
	"math"
	"strconv"
)

// Values of Value.ExpiryNS that are no instant.
const (
	AtTAT    int64 = 0  // lives as long as its TAT, as CL.THROTTLE writes it
	NoExpiry int64 = -1 // TTL reads -1. Once a TAT has passed, the key dies all the same, as nothing is left to remember
)

// Value is what is kept under a key, in wall time: see table.WallAhead.
//
// A string holds an integer. One that lies ahead of now, as Unix ns, is a TAT: CL.THROTTLE goes by it, and the key dies when it has passed.
// Any other is a count, which lives until its expiry. CL.THROTTLE takes that for a TAT that has passed, as redis-cell does. INCR stops at
// 10^15 - 1, which is 12 January 1970 in ns, so that no count lies ahead of a clock that was set. Scripts may SET the time of now in µs or
// ns: that is not ahead of now.
type Value struct {
	TAT         uint64  // Unix ns; where a key holds limits, when the last of them has nothing left to remember; 0: a count
	Count       int64   // of a string that holds no TAT
	ExpiryNS    int64   // AtTAT, NoExpiry, or an instant, Unix ns
	HoldsLimits bool    // the key holds limits, of CL.TAKE; false: a string
	Limits      *Limits // to put: what the key is to hold; nil: what it holds already. From Export and Drain: valid until fn returns
}

// IsCount reports a string that holds a count.
func (v Value) IsCount() bool { return v.TAT == 0 && !v.HoldsLimits }

// Expiry is when the key expires, Unix ns, or NoExpiry. As expiries are whole ms, that of a key that lives as long as its TAT is where the
// ms of its TAT begins, in 2262 at the latest.
func (v Value) Expiry() int64 {
	if v.ExpiryNS == AtTAT {
		return int64(min(v.TAT, latestNS) / 1_000_000 * 1_000_000)
	}
	return v.ExpiryNS
}

// Type is the type that Redis's tools see.
func (v Value) Type() string {
	if v.HoldsLimits {
		return "hash"
	}
	return "string"
}

// ParseInteger reads the integer of a string: decimal digits from -2^63 to 2^64 - 1, with no leading zeros and no blanks, so that
// AppendInteger gives the same bytes. By wallNS, Unix ns, it decides between a TAT and a count. The Value lives as long as its TAT: a
// caller that wants another expiry sets it.
func ParseInteger(text []byte, wallNS int64) (v Value, ok bool) {
	negative := len(text) > 1 && text[0] == '-'
	digits := text
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || digits[0] == '0' && len(text) > 1 {
		return Value{}, false
	}
	n := uint64(0)
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 || n > math.MaxUint64/10 || n*10 > math.MaxUint64-d {
			return Value{}, false
		}
		n = n*10 + d
	}
	switch {
	case negative && n > 1<<63:
		return Value{}, false
	case negative:
		return Value{Count: -int64(n)}, true
	case n > uint64(wallNS):
		return Value{TAT: n}, true
	}
	return Value{Count: int64(n)}, true
}

// Integer is the state of a string that holds n: a TAT if that lies ahead of wallNS, Unix ns, and otherwise a count.
func Integer(n, wallNS, expiryNS int64) Value {
	if n > wallNS {
		return Value{TAT: uint64(n), ExpiryNS: expiryNS}
	}
	return Value{Count: n, ExpiryNS: expiryNS}
}

// Int64 is the integer of a string. ok is false for a TAT from 2^63 on.
func (v Value) Int64() (n int64, ok bool) {
	if v.IsCount() {
		return v.Count, true
	}
	return int64(v.TAT), v.TAT <= math.MaxInt64
}

// AppendInteger appends the integer of a string.
func (v Value) AppendInteger(b []byte) []byte {
	if v.IsCount() {
		return strconv.AppendInt(b, v.Count, 10)
	}
	return strconv.AppendUint(b, v.TAT, 10)
}

// Access says when a call happens, whether it counts as a use of the key, and what its caller may do.
type Access struct {
	NowNS   int64 // limit time, Unix ns, not negative
	Lane    uint8 // the caller's core: calls are counted faster in a lane of its own
	NoTouch bool  // leave the LRU order and the idle time as they are (CLIENT NO-TOUCH). A new key is new all the same
	May     Right // the caller's, to keys that it does not name: see rights.go
}
