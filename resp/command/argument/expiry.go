package argument

import (
	"fmt"
	"math"
)

// Expiry is the option with which SET and others set when a key expires. The zero value says nothing.
type Expiry struct {
	Unit  string // EX, PX, EXAT or PXAT; empty: none
	Value []byte
}

// AtNS returns the instant of the expiry, Unix ns, or the text of an error, in which command is the name. It is 1 at least.
func (e Expiry) AtNS(command string, nowNS int64) (atNS int64, text string) {
	n, ok := ParseInt(e.Value)
	if !ok {
		return 0, ErrNotInteger
	}
	if atNS, ok = InstantNS(n, e.Unit, nowNS); !ok || n <= 0 {
		return 0, fmt.Sprintf(ErrInvalidExpire, command)
	}
	return max(atNS, 1), ""
}

// UntilNS reads how many seconds a policy or a rule is to hold, and returns its end, or the text of an error, in which command is the name.
func UntilNS(seconds []byte, command string, nowNS int64) (untilNS int64, text string) {
	n, ok := ParseInt(seconds)
	switch {
	case !ok:
		return 0, ErrNotInteger
	case n <= 0 || n >= (math.MaxInt64-nowNS)/1e9: // files hold the end in ms, rounded up
		return 0, fmt.Sprintf(ErrInvalidExpire, command)
	}
	return nowNS + n*1e9, ""
}

// InstantNS turns an expiry in a unit into an instant, Unix ns, or returns false where Redis calls it invalid.
func InstantNS(n int64, unit string, nowNS int64) (int64, bool) {
	ms := n
	if unit == "EX" || unit == "EXAT" {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		ms = n * 1000
	}
	if unit == "EX" || unit == "PX" {
		if ms > math.MaxInt64-nowNS/1e6 {
			return 0, false
		}
		ms += nowNS / 1e6
	}
	// Nanoseconds in int64 end in the year 2262. A later instant becomes that end.
	return max(min(ms, math.MaxInt64/1_000_000), 0) * 1e6, true
}
