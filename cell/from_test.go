package cell_test

import (
	"testing"
	"time"

	"celld/cell"
)

// A day that begins at 04:00 in Berlin is 23 hours long when clocks go forward, and 25 when they go back. Times are given in UTC.
func TestADayFromFourInBerlin(t *testing.T) {
	l := mustLiteral(t, "10/day,tz=Europe/Berlin,from=04:00")
	for _, c := range []struct {
		begins, ends string
		hours        int
	}{
		{"2026-03-27T03:00:00Z", "2026-03-28T03:00:00Z", 24},
		{"2026-03-28T03:00:00Z", "2026-03-29T02:00:00Z", 23}, // at 02:00 it is 03:00
		{"2026-03-29T02:00:00Z", "2026-03-30T02:00:00Z", 24},
		{"2026-10-24T02:00:00Z", "2026-10-25T03:00:00Z", 25}, // at 03:00 it is 02:00
		{"2026-10-25T03:00:00Z", "2026-10-26T03:00:00Z", 24},
	} {
		begins, ends := instant(t, c.begins), instant(t, c.ends)
		if got := time.Duration(ends - begins); got != time.Duration(c.hours)*time.Hour {
			t.Fatalf("%s: %v", c.begins, got)
		}
		var st cell.State
		take := func(what string, atNS, remaining, resetNS int64) {
			t.Helper()
			d := l.Decide(&st, atNS, 1, cell.Take)
			if d.Limited != (remaining < 0) || d.Remaining != max(remaining, 0) || d.ResetAfterNS != uint64(resetNS) {
				t.Errorf("%s of the day from %s: %+v; want %d left, reset after %v", what, c.begins, d, remaining, time.Duration(resetNS))
			}
		}
		take("before the beginning", begins-1, 9, 1)
		take("at the beginning", begins, 9, ends-begins)
		for left := int64(8); left >= 0; left-- {
			take("in the middle", begins+int64(12*time.Hour), left, ends-begins-int64(12*time.Hour))
		}
		take("at the end", ends-1, -1, 1)
		take("after the end", ends, 9, int64(nextFour(t, ends)-ends))
	}
}

// nextFour is the next 04:00 in Berlin after one, by package time.
func nextFour(t *testing.T, at int64) int64 {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	year, month, day := time.Unix(0, at).In(berlin).Date()
	return time.Date(year, month, day+1, 4, 0, 0, 0, berlin).UnixNano()
}

func instant(t *testing.T, text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}
