package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// A decision says what will happen: how much would pass now, when this call would, and when the key is full. The clock
// is moved there, and a nanosecond less, to see.
func TestTheForecastHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		now := rapid.Int64Range(0, math.MaxInt64-s.toleranceNS).Draw(t, "now")
		tat := rapid.OneOf(
			rapid.Uint64Range(0, uint64(now+s.toleranceNS)),
			rapid.Uint64Range(uint64(now), uint64(now+s.toleranceNS)),
			rapid.Uint64Range(uint64(now), math.MaxInt64), // left by another limit
		).Draw(t, "TAT")
		quantity := s.drawQuantity(t)
		next, d, err := s.Throttle(tat, now, quantity)
		if err != nil {
			return
		}
		s.wantRemaining(t, next, now, d)
		s.wantRetryAfter(t, tat, now, quantity, d)
		s.wantResetAfter(t, next, now, d)
	})
}

// wantRemaining holds Remaining to: so much passes now, and one more does not. A key that another limit has left with
// more than this one's whole burst taken passes nothing, not even a peek.
func (s setting) wantRemaining(t *rapid.T, tat uint64, now int64, d cell.Decision) {
	if _, after, _ := s.Throttle(tat, now, d.Remaining); after.Limited && d.ResetAfterNS <= uint64(s.toleranceNS) {
		t.Fatalf("%d remain, and do not pass: %+v", d.Remaining, after)
	}
	if d.Remaining == math.MaxInt64 {
		return
	}
	_, after, err := s.Throttle(tat, now, d.Remaining+1)
	if err == nil && !after.Limited {
		t.Fatalf("%d remain, and one more passes: %+v", d.Remaining, after)
	}
}

// wantRetryAfter holds RetryAfterNS to: the same call passes then and no sooner, or Never at all.
func (s setting) wantRetryAfter(t *rapid.T, tat uint64, now, quantity int64, d cell.Decision) {
	switch {
	case !d.Limited:
		if d.RetryAfterNS != cell.Never {
			t.Fatalf("not limited, and to retry after %d ns", d.RetryAfterNS)
		}
	case d.RetryAfterNS == cell.Never:
		if _, last, _ := s.Throttle(tat, math.MaxInt64, quantity); !last.Limited {
			t.Fatalf("never to retry, and at the end of time: %+v", last)
		}
	default:
		at := now + int64(d.RetryAfterNS)
		if _, then, _ := s.Throttle(tat, at, quantity); then.Limited {
			t.Fatalf("told to retry after %d ns, and then: %+v", d.RetryAfterNS, then)
		}
		if _, before, _ := s.Throttle(tat, at-1, quantity); !before.Limited {
			t.Fatalf("told to retry after %d ns, and 1 ns sooner: %+v", d.RetryAfterNS, before)
		}
	}
}

// wantResetAfter holds ResetAfterNS to: the key is full then and no sooner.
func (s setting) wantResetAfter(t *rapid.T, tat uint64, now int64, d cell.Decision) {
	at := now + int64(d.ResetAfterNS)
	if _, then, _ := s.Throttle(tat, at, 0); then.ResetAfterNS != 0 || then.Remaining != s.capacity {
		t.Fatalf("full after %d ns, and then: %+v", d.ResetAfterNS, then)
	}
	if d.ResetAfterNS == 0 {
		return
	}
	_, before, _ := s.Throttle(tat, at-1, 0)
	if before.ResetAfterNS != 1 || before.Remaining != max(s.capacity-1, 0) {
		t.Fatalf("full after %d ns, and 1 ns sooner: %+v", d.ResetAfterNS, before)
	}
}
