package cell

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Counter does what its comment says, in integers without end.
func TestCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := func(name string) int64 {
			return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-5, 5), rapid.Int64Range(LargestCount-5, LargestCount+5),
				rapid.Int64Range(math.MaxInt64-5, math.MaxInt64), rapid.Int64Range(math.MinInt64, math.MinInt64+5)).Draw(t, name)
		}
		n, c := near("n"), Unbounded(near("by"))
		if a, b := near("bound"), near("bound"); rapid.Bool().Draw(t, "bounded") {
			c.Lower, c.Upper = min(a, b), max(a, b)
		}
		c.Strict, c.Saturate = rapid.Bool().Draw(t, "strict"), rapid.Bool().Draw(t, "saturate")

		upper := c.Upper
		if n <= LargestCount {
			upper = min(upper, LargestCount)
		}
		wide := func(n int64) *big.Int { return big.NewInt(n) }
		sum := new(big.Int).Add(wide(n), wide(c.By))
		want, wantAdded, wantErr := n, false, error(nil)
		switch under, over := sum.Cmp(wide(c.Lower)) < 0, sum.Cmp(wide(upper)) > 0; {
		case !under && !over:
			want, wantAdded = sum.Int64(), true
		case c.Strict:
			wantErr = ErrOverflow
		case !c.Saturate || c.Lower > upper:
		default:
			to := c.Lower
			if over {
				to = upper
			}
			if way := new(big.Int).Sub(wide(to), wide(n)); way.IsInt64() {
				want, wantAdded = to, true
			} else {
				wantErr = ErrApplied
			}
		}
		if next, added, err := c.Add(n); next != want || added != wantAdded || err != wantErr {
			t.Fatalf("%+v of %d: %d, %v, %v; want %d, %v, %v", c, n, next, added, err, want, wantAdded, wantErr)
		}
	})
}

// What is not bounded, and what is.
func TestBounded(t *testing.T) {
	c := Unbounded(5)
	if c.Bounded() {
		t.Error("no bounds are some")
	}
	if c.Upper = 7; !c.Bounded() {
		t.Error("an upper bound is none")
	}
	if c.Lower, c.Upper = 0, math.MaxInt64; !c.Bounded() {
		t.Error("a lower bound is none")
	}
}
