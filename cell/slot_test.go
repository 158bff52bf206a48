package cell_test

import (
	"testing"

	"celld/cell"
)

func TestAligned(t *testing.T) {
	for text, want := range map[string]bool{
		"3/1m": false, "3/1m,algo=window": false, "3/1m,algo=slide": false, "3/1m,algo=slide,buckets=6": false, "3/1m,algo=log": false,
		"3/1m,algo=conc": false, "3/1m,algo=window,align=clock": true, "3/second": true, "3/month": true, "3/month,tz=+08:00": true,
	} {
		if l := mustLiteral(t, text); l.Aligned() != want {
			t.Errorf("%s: aligned %v", text, !want)
		}
	}
}

// A limit that is built from a shape and parameters is the limit, and decides at once.
func TestRestore(t *testing.T) {
	for _, text := range []string{"5/1m", "5/1m,burst=2", "5/1m,algo=window", "5/month,tz=+08:00", "5/1m,algo=slide,buckets=6",
		"5/1m,algo=log"} {
		want := mustLiteral(t, text)
		if got := cell.LimitOf(want.Shape, want.Params); got != want {
			t.Errorf("%s became %v", text, got)
		}
	}
	for _, text := range []string{"5/1m,block=1h", "5/1m,shadow"} {
		l := mustLiteral(t, text)
		if got, want := cell.LimitOf(l.Shape, l.Params), mustLiteral(t, "5/1m"); got != want {
			t.Errorf("%s became %v, want %v", text, got, want)
		}
	}
}

func TestCapacityOfALimit(t *testing.T) {
	for maxBurst := int64(-1); maxBurst < 3; maxBurst++ {
		if got := mustLimit(t, maxBurst, 30, 60).Capacity(); got != maxBurst+1 {
			t.Errorf("a burst of %d: capacity %d", maxBurst, got)
		}
	}
}

// A bucket gives back whole calls. The last of them has partly flowed back.
func TestABucketGivesBackNoMoreThanItOwes(t *testing.T) {
	l := mustLiteral(t, "6/1m,burst=3") // 10 s a call
	const second = 1_000_000_000
	for _, c := range []struct{ after, n, given int64 }{
		{0, 1, 1}, {0, 2, 2}, {0, 3, 2}, {5, 1, 1}, {5, 2, 2}, {5, 9, 2}, {10, 9, 1}, {15, 9, 1}, {20, 9, 0}, {30, 9, 0},
	} {
		var st cell.State
		decide(&l, &st, aDayIn2027, 2, cell.Take)
		if given := l.Give(&st, aDayIn2027+c.after*second, c.n); given != c.given {
			t.Errorf("after %d s, %d given back of 2: %d, want %d", c.after, c.n, given, c.given)
		}
	}
}
