package cell_test

import (
	"testing"

	"celld/cell"
)

func TestDecidingAllocatesNothing(t *testing.T) {
	for _, quantity := range []int64{1, 0, -1, 17} {
		var tat uint64
		n := testing.AllocsPerRun(100, func() {
			limit, err := cell.NewBucket(15, 30, 60)
			if err != nil {
				t.Fatal(err)
			}
			if tat, _, err = limit.Throttle(tat, aDayIn2027, quantity); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("quantity %d: %v allocations", quantity, n)
		}
	}
}

func BenchmarkThrottle(b *testing.B) {
	for _, c := range []struct {
		name     string
		quantity int64
		stepNS   int64 // how long after the call before; one flows back each microsecond
		taken    int64 // before the first call, of 1000
		pass     bool  // every call does, or none
	}{
		{"allowed", 1, 1000, 0, true},
		{"limited", 1, 0, 1000, false},
		{"peek", 0, 1000, 1000, true},
		{"refund", -1, 0, 1000, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			limit := mustLimit(b, 999, 1_000_000, 1)
			now, passed := int64(aDayIn2027), 0
			tat, _, _ := limit.Throttle(0, now, c.taken)
			b.ReportAllocs()
			for b.Loop() {
				next, d, _ := limit.Throttle(tat, now, c.quantity)
				if !d.Limited {
					passed++
				}
				tat, now = next, now+c.stepNS
			}
			if c.pass && passed != b.N || !c.pass && passed != 0 {
				b.Fatalf("%d of %d passed", passed, b.N)
			}
		})
	}
}

// This is the cost of a command: its parameters are checked at each call.
func BenchmarkNewBucketAndThrottle(b *testing.B) {
	now, tat, passed := int64(aDayIn2027), uint64(0), 0
	b.ReportAllocs()
	for b.Loop() {
		limit, err := cell.NewBucket(15, 30, 60)
		if err != nil {
			b.Fatal(err)
		}
		next, d, _ := limit.Throttle(tat, now, 1)
		if !d.Limited {
			passed++
		}
		tat, now = next, now+2_000_000_000
	}
	if passed != b.N {
		b.Fatalf("%d of %d passed", passed, b.N)
	}
}
