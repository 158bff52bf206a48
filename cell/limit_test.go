package cell_test

import (
	"fmt"
	"testing"
	"time"

	"celld/cell"
)

// A use is one call on a key under a literal, some time after the one before.
type use struct {
	after time.Duration
	cost  int64
	mode  cell.Mode

	limited           bool
	remaining         int64
	retryAfter, reset time.Duration
}

func TestDecide(t *testing.T) {
	const ms, s, minute, hour, day = time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour
	const take, peek, force = cell.Take, cell.Peek, cell.Force
	for _, c := range []struct {
		limit string
		begin string
		uses  []use
	}{
		{"4/1s,burst=2", "2027-01-15T08:00:00Z", []use{
			{0, 1, take, false, 1, never, 250 * ms},
			{0, 1, take, false, 0, never, 500 * ms},
			{0, 1, take, true, 0, 250 * ms, 500 * ms},
			{0, 3, take, true, 0, never, 500 * ms}, // more than ever fits
			{100 * ms, 1, peek, true, 0, 150 * ms, 400 * ms},
			{150 * ms, 1, peek, false, 1, never, 250 * ms},
			{0, 3, force, false, 0, never, s}, // in debt
			{0, 0, take, false, 0, never, s},
			{0, 1, take, true, 0, 750 * ms, s},
			{0, 3, take, true, 0, never, s},
			{s, 2, take, false, 0, never, 500 * ms},
		}},
		{"3/1m,algo=window", "2027-01-15T08:00:59Z", []use{ // from the first hit, wherever the clock is
			{0, 1, take, false, 2, never, minute},
			{20 * s, 2, take, false, 0, never, 40 * s},
			{0, 1, take, true, 0, 40 * s, 40 * s},
			{0, 4, take, true, 0, never, 40 * s},
			{40*s - 1, 1, take, true, 0, 1, 1},
			{1, 3, take, false, 0, never, minute}, // 5 within 41 s
			{0, 2, force, false, 0, never, minute},
			{minute, 0, peek, false, 3, never, 0},
		}},
		{"3/1m,algo=window,align=clock", "2027-01-15T08:00:59Z", []use{
			{0, 3, take, false, 0, never, s},
			{s, 3, take, false, 0, never, minute}, // 6 within 1 s
			{0, 1, take, true, 0, minute, minute},
		}},
		{"3/1d,algo=window,align=clock,tz=-03:30", "2027-01-15T03:29:59Z", []use{
			{0, 1, take, false, 2, never, s},
			{s, 1, take, false, 2, never, day},
		}},
		{"3/month,tz=+08:00", "2028-02-29T15:59:59Z", []use{ // March begins there
			{0, 3, take, false, 0, never, s},
			{0, 1, take, true, 0, s, s},
			{s, 1, take, false, 2, never, 31 * day},
		}},
		{"3/week", "2027-01-17T23:59:59Z", []use{ // a Sunday
			{0, 1, take, false, 2, never, s},
			{s, 1, take, false, 2, never, 7 * day},
		}},
		{"3/week", "1970-01-02T01:00:00Z", []use{ // before the first Monday
			{0, 1, take, false, 2, never, 71 * hour},
			{71 * hour, 1, take, false, 2, never, 7 * day},
		}},
		{"3/1d,algo=window,align=clock,tz=-12:00", "1970-01-01T01:00:00Z", []use{ // still 1969 there
			{0, 1, take, false, 2, never, 11 * hour},
			{11 * hour, 1, take, false, 2, never, day},
		}},
		{"3/year", "2027-12-31T23:59:59Z", []use{
			{0, 1, take, false, 2, never, s},
			{s, 1, take, false, 2, never, 366 * day},
		}},
		{"10/1m,algo=slide", "2027-01-15T08:00:30Z", []use{
			{0, 8, take, false, 2, never, 90 * s},
			{0, 3, take, true, 2, 37*s + 500*ms, 90 * s}, // once 7 of the 8 count, an eighth into the next minute
			{45 * s, 0, peek, false, 4, never, 45 * s},   // a quarter into it 6 of them do
			{0, 4, take, false, 0, never, 105 * s},
			{0, 1, take, true, 0, 7*s + 500*ms, 105 * s},
			{45 * s, 0, peek, false, 6, never, 60 * s}, // the 4 are all that counts
		}},
		{"10/1m,algo=slide,buckets=6", "2027-01-15T08:00:05Z", []use{
			{0, 8, take, false, 2, never, 55 * s},
			{10 * s, 2, take, false, 0, never, 55 * s},
			{0, 1, take, true, 0, 45 * s, 55 * s},
			{0, 9, take, true, 0, 55 * s, 55 * s},
			{45 * s, 9, take, true, 8, 10 * s, 10 * s}, // the 8 are gone at once
			{0, 8, take, false, 0, never, minute},
		}},
		{"3/1m,algo=log", "2027-01-15T08:00:05Z", []use{
			{0, 1, take, false, 2, never, minute},
			{10 * s, 2, take, false, 0, never, minute},
			{0, 1, take, true, 0, 50 * s, minute},
			{0, 2, take, true, 0, minute, minute},
			{50 * s, 1, take, false, 0, never, minute},
			{5 * s, 1, force, false, 0, never, minute},
			{0, 1, take, true, 0, 5 * s, minute},
			{0, 3, take, true, 0, minute, minute},
		}},
		{"2/1s,algo=log,block=10s", "2027-01-15T08:00:05Z", []use{
			{0, 2, take, false, 0, never, s},
			{0, 1, peek, true, 0, s, s},
			{0, 1, take, true, 0, 10 * s, 10 * s},
			{4 * s, 1, take, true, 0, 6 * s, 6 * s},
			{0, 1, force, false, 0, never, 6 * s},
			{0, 0, take, true, 0, 6 * s, 6 * s},
			{0, 3, take, true, 0, never, 6 * s},
			{6 * s, 2, take, false, 0, never, s},
		}},
		{"1/1h,shadow", "2027-01-15T08:00:05Z", []use{ // what shadow means is for the caller
			{0, 1, take, false, 0, never, hour},
			{0, 1, take, true, 0, hour, hour},
		}},
	} {
		l := mustLiteral(t, c.limit)
		begin, err := time.Parse(time.RFC3339, c.begin)
		if err != nil {
			t.Fatal(err)
		}
		now, st := begin.UnixNano(), cell.State{}
		for i, u := range c.uses {
			now += int64(u.after)
			want := cell.Decision{
				Limited: u.limited, Limit: l.Capacity(), Remaining: u.remaining,
				RetryAfterNS: uint64(u.retryAfter), ResetAfterNS: uint64(u.reset),
			}
			if u.retryAfter == never {
				want.RetryAfterNS = cell.Never
			}
			d := decide(&l, &st, now, u.cost, u.mode)
			if want.Blocked = st.BlockedNS > uint64(now); d != want {
				t.Errorf("%s, call %d:\n got %+v\nwant %+v", c.limit, i, d, want)
			}
		}
	}
}

func ExampleLimit() {
	limit, err := cell.ParseLimit("2/1m,algo=log")
	if err != nil {
		panic(err)
	}
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixNano()
	var state cell.State // nothing else is remembered of a key
	for range 3 {
		limit.Fit(&state, now, 1)
		d := limit.Decide(&state, now, 1, cell.Take)
		if d.Limited {
			fmt.Println("limited, retry after", time.Duration(d.RetryAfterNS))
			continue
		}
		fmt.Println("allowed,", d.Remaining, "of", d.Limit, "remain")
		now += int64(time.Second)
	}
	fmt.Println(string(limit.AppendState(nil, &state)))
	// Output:
	// allowed, 1 of 2 remain
	// allowed, 0 of 2 remain
	// limited, retry after 58s
	// limit=2/1m,algo=log calls=1800000000000000000:1,+1000000000:1
}
