package argument

import "math"

// ParseInt reads an integer as Redis does (string2ll): decimal digits, with a minus sign or none, no blanks and no leading zeros.
// strconv would accept +5 and 007.
func ParseInt(b []byte) (int64, bool) {
	negative := len(b) > 1 && b[0] == '-'
	digits := b
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	return signed(digits, negative)
}

// ParseSigned reads an integer as Rust's str::parse::<i64> does, with which redis-cell reads CL.THROTTLE's arguments: plus,
// minus or no sign, then digits, with any number of leading zeros.
func ParseSigned(b []byte) (int64, bool) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	return signed(b, negative)
}

// signed reads the digits behind a sign.
func signed(digits []byte, negative bool) (int64, bool) {
	n, ok := ParseDigits(digits)
	switch {
	case !ok:
		return 0, false
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

// ParseDigits reads decimal digits only.
func ParseDigits(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
