package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Giving back what a call took leaves the key as if it had not been made, however long after and however much has
// flowed back meanwhile.
func TestARefundUndoesExactlyWhatWasTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		const now = aDayIn2027
		before := rapid.Uint64Range(0, uint64(now)+uint64(s.toleranceNS)).Draw(t, "TAT")
		_, d, _ := s.Throttle(before, now, 0)
		quantity := rapid.Int64Range(0, d.Remaining).Draw(t, "quantity")
		taken, d, _ := s.Throttle(before, now, quantity)
		if d.Limited {
			t.Fatalf("%d do not pass: %+v", quantity, d)
		}

		after := later(now, rapid.Int64Range(0, s.toleranceNS).Draw(t, "wait"))
		given, d, err := s.Throttle(taken, after, -quantity)
		if err != nil || d.Limited {
			t.Fatalf("refund of %d: %+v, %v", quantity, d, err)
		}
		if want := max(before, uint64(after)); max(given, uint64(after)) != want {
			t.Fatalf("TAT %d, want %d as before the call", given, want)
		}
		if _, untouched, _ := s.Throttle(before, after, 0); d != untouched {
			t.Fatalf("%+v, want %+v as before the call", d, untouched)
		}
	})
}

// A refund of more than was taken fills the key and no further; what it leaves is no more than a new key.
func TestARefundNeverMakesMoreThanFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		now := rapid.Int64Range(0, math.MaxInt64).Draw(t, "now")
		tat := s.drawTAT(t, now)
		_, before, _ := s.Throttle(tat, now, 0)
		quantity := -rapid.Int64Range(1, math.MaxInt64/s.intervalNS).Draw(t, "refund")
		next, d, err := s.Throttle(tat, now, quantity)
		switch {
		case err != nil:
			t.Fatal(err)
		case d.Limited: // another limit took more than this refund gives back
			if before.ResetAfterNS <= uint64(s.toleranceNS) {
				t.Fatalf("refund refused: %+v", d)
			}
			return
		case next < uint64(now) || next > max(tat, uint64(now)):
			t.Fatalf("TAT %d became %d at %d", tat, next, now)
		case d.Remaining < before.Remaining || d.Remaining > s.capacity:
			t.Fatalf("%d remained, now %d of %d", before.Remaining, d.Remaining, s.capacity)
		}
		if next == uint64(now) {
			fresh, want, _ := s.Throttle(0, now, 1)
			if got, filled, _ := s.Throttle(next, now, 1); filled != want || !want.Limited && got != fresh {
				t.Fatalf("a filled key: %+v, a new one: %+v", filled, want)
			}
		}
	})
}
