package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// A limited call, a peek and an error leave the state as it came, bit for bit, so that nothing need be stored.
func TestOnlyACallThatPassesChangesTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		now := rapid.Int64Range(0, math.MaxInt64).Draw(t, "now")
		tat := s.drawTAT(t, now)
		quantity := s.drawQuantity(t)
		next, d, err := s.Throttle(tat, now, quantity)
		if (err != nil || d.Limited || quantity == 0) && next != tat {
			t.Fatalf("TAT %d became %d: %+v, %v", tat, next, d, err)
		}
		if peeked, _, _ := s.Throttle(tat, now, 0); peeked != tat {
			t.Fatalf("a peek made TAT %d into %d", tat, peeked)
		}
	})
}

// A TAT that has passed is the same as no key.
func TestAPastTATIsANewKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		now := rapid.Int64Range(0, math.MaxInt64).Draw(t, "now")
		past := rapid.Uint64Range(0, uint64(now)).Draw(t, "past TAT")
		quantity := s.drawQuantity(t)
		fresh, want, _ := s.Throttle(0, now, quantity)
		next, got, _ := s.Throttle(past, now, quantity)
		if got != want || next != fresh && (next != past || fresh != 0) {
			t.Fatalf("TAT %d: %d, %+v; a new key: %d, %+v", past, next, got, fresh, want)
		}
	})
}

// With any arguments, even at a negative instant, nothing panics and no number leaves its range.
func TestHostileArgumentsStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, err := cell.NewBucket(anyInt64().Draw(t, "max burst"), anyInt64().Draw(t, "count"), anyInt64().Draw(t, "period"))
		if err != nil && limit != (cell.Bucket{}) {
			t.Fatalf("%+v beside %v", limit, err)
		}
		tat := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64})).Draw(t, "TAT")
		_, d, err := limit.Throttle(tat, anyInt64().Draw(t, "now"), anyInt64().Draw(t, "quantity"))
		if err != nil && d != (cell.Decision{}) {
			t.Fatalf("%+v beside %v", d, err)
		}
		if d.Limit < 0 || d.Remaining < 0 || d.Remaining > d.Limit || d.Limited && d.RetryAfterNS == 0 {
			t.Fatalf("%+v", d)
		}
	})
}
