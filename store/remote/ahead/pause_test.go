package ahead

import (
	"testing"
	"time"

	"celld/cell"
	"celld/store"
)

// An instance pauses for half of the time for which units last at least, and for all of it at most, on the bucket that has too little left.
func TestPauses(t *testing.T) {
	const lasts, nowNS = 100 * time.Millisecond, int64(1e18)
	b, err := cell.NewBucket(999, 1000, 1) // 100 come back while units last
	if err != nil {
		t.Fatal(err)
	}
	other, err := cell.NewBucket(1999, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	window, err := cell.ParseLimit("5/1s,algo=window")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		left, asked int64
		calls       []store.Call
		pauses      bool
	}{
		{0, 1, nil, true}, {8, 1, nil, false}, {8, 2, nil, true}, {99, 100, nil, true}, {100, 100, nil, false},
		{0, 9, []store.Call{{Limit: &window}}, false},
	} {
		for range 200 {
			tat := uint64(nowNS + b.ToleranceNS() - c.left*b.IntervalNS())
			p := (&Grant{of: &holding{ask: ask{bucket: b, calls: c.calls}}, asked: c.asked, lasts: lasts, nowNS: nowNS}).Pause(tat)
			if p == nil && c.pauses || p != nil && !c.pauses {
				t.Fatalf("%d left, %d asked for: %v", c.left, c.asked, p)
			}
			if p == nil {
				continue
			}
			if in := time.Duration(p.untilNS - nowNS); in < lasts/2 || in >= lasts {
				t.Fatalf("a pause of %s", in)
			}
			for at, limited := range map[int64]bool{p.untilNS - 1: true, p.untilNS: false} {
				if _, d, _ := b.Throttle(p.TAT(b, tat), at, 1); d.Limited != limited {
					t.Fatalf("%d left, %s before the end: limited is %v", c.left, time.Duration(p.untilNS-at), d.Limited)
				}
			}
			if p.TAT(other, tat) != tat {
				t.Fatal("another bucket pauses")
			}
		}
	}
}
