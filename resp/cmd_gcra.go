package resp

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"celld/cell"
)

// readGCRA reads the command that Redis 8.8 nearly had, in its words (src/gcra.c and src/commands/gcra.json of its repository). It
// keeps a TAT, as CL.THROTTLE does, and so may be asked for the same keys.
func readGCRA(_ *Session, f *form, args [][]byte) (text string) {
	call, text := parseGCRA(args)
	if text != "" {
		return text
	}
	limit, quantity, err := call.Bucket()
	var outOfRange *cell.RangeError
	if errors.As(err, &outOfRange) {
		return formatError(errGCRAOverflow, map[string]string{"tokens": "TOKENS", "max_burst": "max_burst"}[outOfRange.Param])
	}
	f.limit, f.quantity = limit, quantity
	return ""
}

// parseGCRA reads the arguments, with Redis's checks in its order. The text is that of an error, or empty.
func parseGCRA(args [][]byte) (call cell.TokenCall, text string) {
	if len(args) > 7 {
		return call, formatError(errArity, "gcra")
	}
	var ok bool
	if call.MaxBurst, ok = parseInt(args[2]); !ok || call.MaxBurst < 0 {
		return call, errNotPositive
	}
	if call.PerPeriod, text = parseCount(args[3]); text != "" {
		return call, text
	}
	if call.PeriodS, ok = parseDouble(args[4]); !ok {
		return call, errNotFloat
	}
	if call.PeriodS <= 0 || call.PeriodS >= 1e12 {
		return call, errGCRAPeriod
	}
	call.Tokens = 1
	switch {
	case len(args) == 5:
	case !strings.EqualFold(string(args[5]), "tokens"):
		text = errSyntax
	case len(args) == 6:
		text = errGCRATokens
	default:
		call.Tokens, text = parseCount(args[6])
	}
	return call, text
}

// parseCount reads a number from 1 on.
func parseCount(arg []byte) (n int64, text string) {
	n, ok := parseInt(arg)
	switch {
	case !ok:
		return 0, errNotInteger
	case n < 1:
		return 0, formatError(errNotBetween, 1, math.MaxInt64)
	}
	return n, ""
}

// parseDouble reads what Redis takes for a double: all that C's strtod reads, from the first byte to the last, but for nan and
// what a double cannot hold.
func parseDouble(arg []byte) (float64, bool) {
	if n, ok := parseDigits(arg); ok { // as clients send it
		return float64(n), true
	}
	m := cFloat.FindSubmatch(arg)
	if m == nil || len(m[1]) != len(arg) {
		f, err := strconv.ParseFloat(string(arg), 64)
		return f, err == nil && math.IsInf(f, 0) // that is how it is written
	}
	f, err := parseCFloat(m)
	return f, err == nil && (f != 0 || isZero(m))
}

// isZero reports whether what cFloat has found is 0 as it is written, and not too small for a double.
func isZero(m [][]byte) bool {
	digits, exponent := m[1], "eE"
	if m[2] != nil {
		digits, exponent = m[2][2:], "pP"
	}
	if end := bytes.IndexAny(digits, exponent); end >= 0 {
		digits = digits[:end]
	}
	return !bytes.ContainsAny(digits, "123456789abcdefABCDEF")
}
