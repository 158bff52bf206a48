package cell_test

import (
	"testing"
	"time"

	"celld/cell"
)

// fill takes from a key of 10 sub-windows of a second: so many calls in each, from the first second on.
func fill(t *testing.T, calls ...int64) (l cell.Limit, st cell.State) {
	t.Helper()
	l = mustLiteral(t, "10/10s,algo=slide,buckets=10")
	for second, n := range calls {
		if d := decide(&l, &st, at(second), n, cell.Take); d.Limited {
			t.Fatalf("second %d: %+v", second, d)
		}
	}
	return l, st
}

func at(second int) int64 { return aDayIn2027 + int64(second)*int64(time.Second) }

// A call that needs more than the oldest sub-window frees waits for as many as it needs.
func TestACallWaitsForAsManySubWindowsAsItNeeds(t *testing.T) {
	l, st := fill(t, 3, 2, 1, 4)
	for cost, wait := range map[int64]int{1: 7, 3: 7, 4: 8, 5: 8, 6: 9, 7: 10, 10: 10} {
		if d := decide(&l, &st, at(3), cost, cell.Take); !d.Limited || d.RetryAfterNS != uint64(wait)*uint64(time.Second) {
			t.Errorf("cost %d: %+v, want to wait %d s", cost, d, wait)
		}
	}
}

func TestSubWindowsThatNoLongerCountAreNotGivenBack(t *testing.T) {
	l, st := fill(t, 3, 0, 0, 0, 0, 1)
	if given := l.Give(&st, at(12), 4); given != 1 {
		t.Errorf("%d given back, and 1 counted", given)
	}
	if d := decide(&l, &st, at(12), 0, cell.Peek); d.Remaining != 10 || d.ResetAfterNS != 0 {
		t.Errorf("after that %+v", d)
	}
}

// Once the newest calls are given back, the key is full when those before them are gone.
func TestTheResetIsOfWhatIsLeft(t *testing.T) {
	l, st := fill(t, 1, 2, 0, 3)
	for _, c := range []struct {
		give  int64
		reset int // in seconds
	}{{2, 10}, {1, 8}, {1, 8}, {1, 7}} {
		if given := l.Give(&st, at(3), c.give); given != c.give {
			t.Fatalf("%d given back, want %d", given, c.give)
		}
		if d := decide(&l, &st, at(3), 0, cell.Peek); d.ResetAfterNS != uint64(c.reset)*uint64(time.Second) {
			t.Errorf("%+v, want full in %d s", d, c.reset)
		}
	}
}

// Each sub-window keeps its calls, wherever a shift moves it.
func TestAShiftKeepsEachSubWindow(t *testing.T) {
	for shift := -25; shift <= 25; shift++ {
		l, st := fill(t, 3, 2, 1, 4)
		l.Shift(&st, at(shift)-at(0))
		for second, want := range map[int]int64{3: 0, 9: 0, 10: 3, 11: 5, 12: 6, 13: 10} {
			if d := decide(&l, &st, at(shift+second), 0, cell.Peek); d.Remaining != want {
				t.Errorf("shifted by %d s: %+v in second %d, want %d left", shift, d, second, want)
			}
		}
	}
}
