package resp

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"celld/cell"
	"celld/resp/command"
)

// readGCRA reads GCRA as Redis 8.8 nearly had it (src/gcra.c and src/commands/gcra.json of its repository). It stores a TAT, as
// CL.THROTTLE does, so both commands can use the same keys.
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

// parseGCRA reads the arguments. It makes Redis's checks in Redis's order. It also returns the text of an error, or "".
func parseGCRA(args [][]byte) (call cell.TokenCall, text string) {
	if len(args) > 7 {
		return call, formatError(errArity, "gcra")
	}
	var ok bool
	if call.MaxBurst, ok = command.ParseInt(args[2]); !ok || call.MaxBurst < 0 {
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

// parseCount reads a number that is at least 1.
func parseCount(arg []byte) (n int64, text string) {
	n, ok := command.ParseInt(arg)
	switch {
	case !ok:
		return 0, errNotInteger
	case n < 1:
		return 0, formatError(errNotBetween, 1, math.MaxInt64)
	}
	return n, ""
}

// parseDouble reads a double as Redis does. C's strtod must read the whole text, nan is refused, and so is a number that a double
// cannot hold.
func parseDouble(arg []byte) (float64, bool) {
	if n, ok := command.ParseDigits(arg); ok { // the usual case
		return float64(n), true
	}
	m := cFloat().FindSubmatch(arg)
	number := string(arg)
	switch {
	case m == nil:
		f, err := strconv.ParseFloat(number, 64)
		return f, err == nil && math.IsInf(f, 0) // inf is allowed only if the text says so
	case m[1] != nil && m[2] == nil:
		number += "p0" // Go requires an exponent in a hexadecimal number
	}
	f, err := strconv.ParseFloat(number, 64)
	return f, err == nil && (f != 0 || isZero(m))
}

// cFloat matches what C's strtod reads, except inf and nan: the digits of a hexadecimal number and its exponent, or a decimal one.
var cFloat = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[+-]?(?:(0[xX](?:[[:xdigit:]]+\.?[[:xdigit:]]*|\.[[:xdigit:]]+))([pP][+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$`)
})

// isZero reports whether the digits that cFloat has found are all 0. A number that is only too small for a double has others.
func isZero(m [][]byte) bool {
	digits, exponent := m[0], "eE"
	if m[1] != nil {
		digits, exponent = m[1][2:], "pP"
	}
	if end := bytes.IndexAny(digits, exponent); end >= 0 {
		digits = digits[:end]
	}
	return !bytes.ContainsAny(digits, "123456789abcdefABCDEF")
}
