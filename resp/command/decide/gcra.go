package decide

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
)

// readGCRA reads GCRA as it nearly came into Redis 8.8 (src/gcra.c and src/commands/gcra.json of its repository), with Redis's checks in
// Redis's order. It stores a TAT, as CL.THROTTLE does, so both commands can use the same keys.
func readGCRA(_ *limits, f *Shape, args [][]byte) (text string) {
	if len(args) > 7 {
		return fmt.Sprintf(command.ErrArity, "gcra")
	}
	call, ok := cell.TokenCall{Tokens: 1}, false
	if call.MaxBurst, ok = argument.ParseInt(args[2]); !ok || call.MaxBurst < 0 {
		return errNotPositive
	}
	if call.PerPeriod, text = parseCount(args[3]); text != "" {
		return text
	}
	if call.PeriodS, ok = parseDouble(string(args[4])); !ok {
		return errNotFloat
	}
	if call.PeriodS <= 0 || call.PeriodS >= 1e12 {
		return errGCRAPeriod
	}
	if len(args) > 5 {
		if call.Tokens, text = parseTokens(args[5:]); text != "" {
			return text
		}
	}
	var err error
	f.bucket, f.quantity, err = call.Bucket()
	var outOfRange *cell.RangeError
	if errors.As(err, &outOfRange) {
		return fmt.Sprintf(errGCRAOverflow, map[string]string{"tokens": "TOKENS", "max_burst": "max_burst"}[outOfRange.Param])
	}
	return ""
}

// parseTokens reads TOKENS count.
func parseTokens(args [][]byte) (n int64, text string) {
	switch {
	case !strings.EqualFold(string(args[0]), "tokens"):
		return 0, argument.ErrSyntax
	case len(args) == 1:
		return 0, errGCRATokens
	}
	return parseCount(args[1])
}

// parseCount reads a number that is at least 1.
func parseCount(arg []byte) (n int64, text string) {
	n, ok := argument.ParseInt(arg)
	switch {
	case !ok:
		return 0, argument.ErrNotInteger
	case n < 1:
		return 0, fmt.Sprintf(argument.ErrNotBetween, 1, math.MaxInt64)
	}
	return n, ""
}

// parseDouble reads a double as Redis does, by C's strtod, which must read the whole text: nan is refused, and so is a number that a double
// cannot hold.
func parseDouble(text string) (f float64, ok bool) {
	text = strings.ToLower(text)
	digits, exponent := strings.TrimLeft(text, "+-"), "e"
	if hex, isHex := strings.CutPrefix(digits, "0x"); isHex {
		digits, exponent = hex, "p"
		if !strings.Contains(hex, "p") {
			text += "p0" // Go requires an exponent in a hexadecimal number
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	digits, _, _ = strings.Cut(digits, exponent)
	tooSmall := f == 0 && strings.Trim(digits, "0.") != ""
	return f, err == nil && !math.IsNaN(f) && !tooSmall && !strings.Contains(text, "_") // which Go takes between digits
}
