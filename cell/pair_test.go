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

// A call that is taken in the last booked window forgets the window before. From then on FORCE counts only what was used in the last one.
func TestWhatWasBeforeIsForgotten(t *testing.T) {
	l := mustLiteral(t, "10/1s,algo=window")
	var st cell.State
	decide(&l, &st, aDayIn2027, cell.MaxCost, cell.Force)
	l.Fit(&st, aDayIn2027, 1)
	l.Book(&st, aDayIn2027, 1)
	inLast := int64(aDayIn2027) + 1_100_000_000
	if !l.Holds(&st, inLast, cell.MaxCost-1) || l.Holds(&st, inLast, cell.MaxCost) || l.Holds(&st, aDayIn2027, 1) {
		t.Error("it holds other than what has room beside what is used")
	}
	decide(&l, &st, inLast, 1, cell.Take)
	if got, want := string(l.AppendState(nil, &st)), "limit=10/1s,algo=window until=1800000002000000000 used=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A call to a limit that warms up passes if it is paid for within 292 years, however cold the limit is.
func TestNeverPaid(t *testing.T) {
	for text, most := range map[string]int64{
		"1/1d,burst=1,warmup=1s,cold=100": 106_727, "1/366d,burst=1,warmup=1ms,cold=100": 291, "10000000/1s,warmup=24d": 1 << 53,
	} {
		l := mustLiteral(t, text)
		for cost, passes := range map[int64]bool{1: true, min(most, cell.MaxCost): true, most + 1: false} {
			if cost > cell.MaxCost {
				continue
			}
			var st cell.State
			wait := l.Forecast(&st, aDayIn2027, cost)
			d := l.Decide(&st, aDayIn2027, cost, cell.Take)
			if d.Limited == passes || (wait == 0) != passes || l.Holds(&cell.State{}, aDayIn2027, cost) != passes {
				t.Errorf("%s, cost %d: limited %v, a wait of %d", text, cost, d.Limited, wait)
			}
		}
	}
}
