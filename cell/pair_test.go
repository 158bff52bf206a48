package cell_test

import (
	"testing"

	"celld/cell"
)

// What is forced is counted to the last one up to MaxCost, and no further.
func TestHolds(t *testing.T) {
	for _, text := range []string{
		"5/1h,algo=window", "9007199254740991/month", "5/1h,algo=slide", "9007199254740991/1h,algo=slide", "5/1h,algo=slide,buckets=3",
		"5/1h,algo=log", "5/1h,algo=conc",
	} {
		l := mustLiteral(t, text)
		var st cell.State
		if !l.Holds(&st, aDayIn2027, cell.MaxCost) {
			t.Errorf("%s: an empty state does not hold the most", text)
		}
		decide(&l, &st, aDayIn2027, 7, cell.Force)
		if !l.Holds(&st, aDayIn2027, cell.MaxCost-7) || l.Holds(&st, aDayIn2027, cell.MaxCost-6) {
			t.Errorf("%s: beside 7, it does not hold %d, or more", text, int64(cell.MaxCost-7))
		}
		if at := aDayIn2027 + 100*86_400e9; !l.Holds(&st, int64(at), cell.MaxCost) {
			t.Errorf("%s: what is over still counts", text)
		}
		decide(&l, &st, aDayIn2027+1, cell.MaxCost-7, cell.Force)
		if given := l.Give(&st, aDayIn2027+1, cell.MaxCost); l.Algo != cell.Conc && given != cell.MaxCost {
			t.Errorf("%s: %d given back, want all", text, given)
		}
	}
}

// What flows back takes 292 years at most.
func TestHoldsOfBuckets(t *testing.T) {
	for text, most := range map[string]int64{"5/1h": 12_810_238, "5/1h,warmup=1ms,cold=1.01": 12_807_358, "1/366d": 291} {
		l := mustLiteral(t, text)
		var st cell.State
		low, high := int64(0), int64(cell.MaxCost)
		for high-low > 1 {
			if half := (low + high) / 2; l.Holds(&st, aDayIn2027, half) {
				low = half
			} else {
				high = half
			}
		}
		if low != most {
			t.Errorf("%s: it holds %d, want %d", text, low, most)
		}
		decide(&l, &st, aDayIn2027, low, cell.Force)
		if l.Holds(&st, aDayIn2027, low) {
			t.Errorf("%s: it holds twice as much", text)
		}
	}
}
