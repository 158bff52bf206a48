package cell_test

import (
	"testing"
	"time"

	"celld/cell"
)

// never is cell.Never in the tables below.
const never = -1 * time.Nanosecond

// A step is one call on a key, some time after the one before.
type step struct {
	after    time.Duration
	quantity int64

	limited           bool
	remaining         int64
	retryAfter, reset time.Duration
}

func TestThrottle(t *testing.T) {
	const ms, s, minute, hour, year = time.Millisecond, time.Second, time.Minute, time.Hour, 365 * 24 * time.Hour
	for _, c := range []struct {
		name                    string
		maxBurst, count, period int64
		steps                   []step
	}{
		{"30 a minute, 16 at once: one flows back every 2 s", 15, 30, 60, []step{
			{0, 1, false, 15, never, 2 * s},
			{0, 1, false, 14, never, 4 * s},
			{0, 12, false, 2, never, 28 * s},
			{0, 3, true, 2, 2 * s, 28 * s}, // 2 are left: the third is there in 2 s
			{0, 2, false, 0, never, 32 * s},
			{0, 1, true, 0, 2 * s, 32 * s},
			{1 * s, 1, true, 0, 1 * s, 31 * s},
			{1 * s, 1, false, 0, never, 32 * s},
			{5 * s, 0, false, 2, never, 27 * s}, // two and a half have flowed back
			{0, 16, true, 2, 27 * s, 27 * s},
			{0, 17, true, 2, never, 27 * s}, // more than ever fits
			{27 * s, 16, false, 0, never, 32 * s},
			{hour, 0, false, 16, never, 0},
		}},
		{"one a minute, one at once", 0, 1, 60, []step{
			{0, 1, false, 0, never, minute},
			{0, 1, true, 0, minute, minute},
			{minute - 1, 1, true, 0, 1, 1},
			{1, 1, false, 0, never, minute},
			{0, 2, true, 0, never, minute},
		}},
		{"nothing ever passes", -1, 1, 60, []step{
			{0, 1, true, 0, never, 0},
			{year, 1, true, 0, never, 0},
			{0, 0, false, 0, never, 0},
			{0, -1, false, 0, never, 0},
		}},
		{"one a year, two at once", 1, 1, 31_536_000, []step{
			{0, 1, false, 1, never, year},
			{0, 1, false, 0, never, 2 * year},
			{0, 1, true, 0, year, 2 * year},
			{year - hour, 1, true, 0, hour, year + hour},
			{hour, 1, false, 0, never, 2 * year},
		}},
		{"10^9 a second, 1000 at once", 999, 1_000_000_000, 1, []step{
			{0, 1000, false, 0, never, 1000},
			{0, 1, true, 0, 1, 1000},
			{1, 1, false, 0, never, 1000},
			{10, 11, true, 10, 1, 990},
			{0, 10, false, 0, never, 1000},
			{s, 0, false, 1000, never, 0},
		}},
		{"giving back", 5, 10, 1, []step{
			{0, 6, false, 0, never, 600 * ms},
			{0, -2, false, 2, never, 400 * ms},
			{150 * ms, -1, false, 4, never, 150 * ms},
			{0, -9, false, 6, never, 0}, // past full
			{0, 7, true, 6, never, 0},
			{0, 6, false, 0, never, 600 * ms},
		}},
		{"peeks on a new key and on an empty one", 0, 1, 1, []step{
			{0, 0, false, 1, never, 0},
			{0, 1, false, 0, never, s},
			{0, 0, false, 0, never, s},
			{400 * ms, 0, false, 0, never, 600 * ms},
		}},
	} {
		limit := mustLimit(t, c.maxBurst, c.count, c.period)
		now, tat := int64(aDayIn2027), uint64(0)
		for i, st := range c.steps {
			now += int64(st.after)
			next, d, err := limit.Throttle(tat, now, st.quantity)
			want := cell.Decision{
				Limited: st.limited, Limit: c.maxBurst + 1, Remaining: st.remaining,
				RetryAfterNS: uint64(st.retryAfter), ResetAfterNS: uint64(st.reset),
			}
			if st.retryAfter == never {
				want.RetryAfterNS = cell.Never
			}
			if err != nil || d != want {
				t.Errorf("%s, step %d:\n got %+v, %v\nwant %+v", c.name, i, d, err, want)
			}
			tat = next
		}
	}
}

// Changing a limit keeps what was taken, as time: 10 of 20 a second ago at 1 s each are 9 s.
func TestAKeyUnderAnotherLimit(t *testing.T) {
	tat, _, _ := mustLimit(t, 19, 1, 1).Throttle(0, aDayIn2027, 10)
	const now = aDayIn2027 + int64(time.Second)
	for _, c := range []struct {
		name             string
		maxBurst, period int64
		quantity         int64
		want             cell.Decision
	}{
		{"a larger burst", 99, 1, 1, cell.Decision{Limit: 100, Remaining: 90, RetryAfterNS: cell.Never, ResetAfterNS: 10e9}},
		{"a smaller burst", 4, 1, 1, cell.Decision{Limited: true, Limit: 5, RetryAfterNS: 5e9, ResetAfterNS: 9e9}},
		{"a slower rate", 4, 2, 1, cell.Decision{Limited: true, Limit: 5, RetryAfterNS: 1e9, ResetAfterNS: 9e9}},
		{"a peek when more is taken than fits", 4, 1, 0, cell.Decision{Limited: true, Limit: 5, RetryAfterNS: 4e9, ResetAfterNS: 9e9}},
		{"a refund that is not enough", 4, 1, -3, cell.Decision{Limited: true, Limit: 5, RetryAfterNS: 1e9, ResetAfterNS: 9e9}},
		{"a refund that is", 4, 1, -5, cell.Decision{Limit: 5, Remaining: 1, RetryAfterNS: cell.Never, ResetAfterNS: 4e9}},
	} {
		_, d, err := mustLimit(t, c.maxBurst, 1, c.period).Throttle(tat, now, c.quantity)
		if err != nil || d != c.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, d, err, c.want)
		}
	}
}

// The latest TAT there can be: redis-cell itself writes up to 292 years ahead, past int64.
func TestTATsPastInt64(t *testing.T) {
	const now, most = int64(aDayIn2027), int64(1<<63 - 1)
	limit := mustLimit(t, most-1, 1_000_000_000, 1)
	tat, d, err := limit.Throttle(0, now, most)
	if want := uint64(now) + uint64(most); err != nil || d.Limited || tat != want {
		t.Fatalf("TAT %d, %+v, %v; want %d", tat, d, err, want)
	}
	if back, d, err := limit.Throttle(tat, now, -most); err != nil || d.Remaining != most || back != uint64(now) {
		t.Errorf("given back: TAT %d, %+v, %v", back, d, err)
	}
	const last = uint64(1<<64 - 1)
	next, d, err := mustLimit(t, 0, 1, 1).Throttle(last, now, 1)
	want := cell.Decision{Limited: true, Limit: 1, RetryAfterNS: last - uint64(now), ResetAfterNS: last - uint64(now)}
	if err != nil || next != last || d != want {
		t.Errorf("TAT %d, %+v, %v; want %+v", next, d, err, want)
	}
}
