package cell

import (
	"errors"
	"math"
)

// Errors of Counter.Add, in Redis's words. Nothing is to change.
var (
	ErrOverflow = errors.New("increment or decrement would overflow") // Counter.Strict, and the sum is not between the bounds
	ErrApplied  = errors.New("applied increment would overflow")      // the way to the bound is longer than int64
)

// LargestCount is how far up a count is added: 10^15 - 1, in ns on 12 January 1970. An integer ahead of now is a TAT, and a count must not
// get there. What was set to more, such as a time in µs, moves as far as 64 bits go.
const LargestCount = 1e15 - 1

// Counter adds to an integer, within bounds, as INCR and INCREX do.
type Counter struct {
	By           int64
	Lower, Upper int64
	Strict       bool // a sum that is not between the bounds is an error
	Saturate     bool // it becomes the nearer bound; otherwise the integer stays
}

// Unbounded is a Counter that adds by, and no bounds.
func Unbounded(by int64) Counter { return Counter{By: by, Lower: math.MinInt64, Upper: math.MaxInt64} }

// Bounded reports whether there is a bound beside the type's.
func (c *Counter) Bounded() bool { return c.Lower != math.MinInt64 || c.Upper != math.MaxInt64 }

// Add returns what an integer becomes. It stays, and added is false, where the sum would not be between the bounds.
func (c *Counter) Add(n int64) (next int64, added bool, err error) {
	upper := c.Upper
	if n <= LargestCount {
		upper = min(upper, LargestCount)
	}
	next = n + c.By
	wrapped := (next > n) != (c.By > 0) && c.By != 0
	if !wrapped && next >= c.Lower && next <= upper {
		return next, true, nil
	}
	switch {
	case c.Strict:
		return n, false, ErrOverflow
	case !c.Saturate || c.Lower > upper:
		return n, false, nil
	case wrapped && c.By > 0 || !wrapped && next > upper:
		next = upper
	default:
		next = c.Lower
	}
	if way := next - n; (next > n) != (way > 0) && next != n {
		return n, false, ErrApplied
	}
	return next, true, nil
}
