package cell_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"celld/cell"
)

func TestParseLimit(t *testing.T) {
	for text, canonical := range map[string]string{
		"100/1m":                                 "100/1m",
		"100/m":                                  "100/1m",
		"100/60s":                                "100/1m",
		"0100/060s":                              "100/1m",
		"100/1m,algo=gcra":                       "100/1m",
		"100/1m,burst=100":                       "100/1m",
		"100/1m,burst=1":                         "100/1m,burst=1",
		"100/1m,burst=101,algo=gcra":             "100/1m,burst=101",
		"5/1s,algo=log":                          "5/1s,algo=log",
		"20/30s,algo=conc":                       "20/30s,algo=conc",
		"1/24h":                                  "1/1d",
		"1/366d":                                 "1/366d",
		"1/8784h":                                "1/366d",
		"10/1us":                                 "10/1us",
		"10/us":                                  "10/1us",
		"1/90m":                                  "1/90m",
		"1/1001us":                               "1/1001us",
		"1/3000us":                               "1/3ms",
		"10000000/1s":                            "10000000/1s",
		"2147483647/366d":                        "2147483647/366d",
		"9007199254740991/month":                 "9007199254740991/month",
		"9007199254740991/1us,algo=slide":        "9007199254740991/1us,algo=slide",
		"11/2us,algo=slide,buckets=2":            "11/2us,algo=slide,buckets=2",
		"11/1us,algo=window,align=clock":         "11/1us,algo=window,align=clock",
		"1/1us,burst=2147483647":                 "1/1us,burst=2147483647",
		"1/366d,burst=291":                       "1/366d,burst=291",
		"7/1s,algo=window":                       "7/1s,algo=window",
		"7/10s,align=clock,algo=window":          "7/10s,algo=window,align=clock",
		"7/1d,tz=-03:30,algo=window,align=clock": "7/1d,algo=window,align=clock,tz=-03:30",
		"7/1d,tz=-00:00,algo=window,align=clock": "7/1d,algo=window,align=clock",
		"10000/month":                            "10000/month",
		"10000/month,algo=window":                "10000/month",
		"10000/month,tz=+08:00":                  "10000/month,tz=+08:00",
		"1/year,tz=+14:00":                       "1/year,tz=+14:00",
		"1/week,tz=-12:00":                       "1/week,tz=-12:00",
		"1/day,tz=+05:45":                        "1/day,tz=+05:45",
		"10000001/second":                        "10000001/second",
		"6/hour,shadow":                          "6/hour,shadow",
		"6/minute,block=1h":                      "6/minute,block=1h",
		"9/1s,algo=slide":                        "9/1s,algo=slide",
		"9/1s,buckets=2,algo=slide":              "9/1s,algo=slide,buckets=2",
		"9/128us,algo=slide,buckets=128":         "9/128us,algo=slide,buckets=128",
		"9/1s,shadow,block=60000ms,burst=2":      "9/1s,burst=2,block=1m,shadow",
		"9/1s,block=1us":                         "9/1s,block=1us",
		"9/1s,warmup=5s":                         "9/1s,burst=1,warmup=5s",
		"1/1s,warmup=5000ms,burst=1,cold=3":      "1/1s,burst=1,warmup=5s",
		"9/1s,cold=2.50,warmup=24d,algo=gcra":    "9/1s,burst=1,warmup=24d,cold=2.5",
		"9/1s,cold=1.01,warmup=1000us,shadow":    "9/1s,burst=1,warmup=1ms,cold=1.01,shadow",
		"9/1s,cold=100.00,warmup=m,block=1m":     "9/1s,burst=1,warmup=1m,cold=100,block=1m",
		"9/1s,block=366d":                        "9/1s,block=366d",
	} {
		l, err := cell.ParseLimit(text)
		if err != nil || l.String() != canonical {
			t.Errorf("%s is %v, %v; want %s", text, l, err, canonical)
		}
		if again, err := cell.ParseLimit(canonical); err != nil || again != l {
			t.Errorf("%s is %+v, and %s is %+v, %v", text, l, canonical, again, err)
		}
	}
}

func TestParseLimitSaysWhatItReads(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]cell.Limit{
		"5/2s,burst=9": {Shape: cell.Shape{PeriodNS: 2e9}, Params: cell.Params{Count: 5, Burst: 9}},
		"5/2s":         {Shape: cell.Shape{PeriodNS: 2e9}, Params: cell.Params{Count: 5, Burst: 5}},
		"5/month,tz=-01:30,shadow,block=1s": {
			Shape:  cell.Shape{Algo: cell.Window, Unit: 6 /* month */, Zone: -90, PeriodNS: int64(28 * day)},
			Params: cell.Params{Count: 5}, BlockNS: 1e9, Shadow: true,
		},
		"5/2s,block-at=full,block=1s": {
			Shape: cell.Shape{PeriodNS: 2e9}, Params: cell.Params{Count: 5, Burst: 5}, BlockNS: 1e9, BlockAtFull: true,
		},
		"5/2s,block=1s,block-at=denied": {Shape: cell.Shape{PeriodNS: 2e9}, Params: cell.Params{Count: 5, Burst: 5}, BlockNS: 1e9},
		"5/7d,algo=window,align=clock":  {Shape: cell.Shape{Algo: cell.Window, Clock: true, PeriodNS: int64(7 * day)}, Params: cell.Params{Count: 5}},
		"5/7d,algo=slide,buckets=7":     {Shape: cell.Shape{Algo: cell.Slide, Buckets: 7, PeriodNS: int64(7 * day)}, Params: cell.Params{Count: 5}},
		"5/7d,algo=log":                 {Shape: cell.Shape{Algo: cell.Log, PeriodNS: int64(7 * day)}, Params: cell.Params{Count: 5}},
	} {
		got := mustLiteral(t, text)
		if got.Shape != want.Shape || got.Params != want.Params || got.BlockNS != want.BlockNS || got.BlockAtFull != want.BlockAtFull ||
			got.Shadow != want.Shadow {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
		if capacity := got.Capacity(); capacity != max(want.Burst, want.Count) {
			t.Errorf("%s passes %d at once", text, capacity)
		}
	}
	for text, want := range map[string]string{
		"5/2s,burst=9,shadow":           "gcra/2s",
		"5/2s,warmup=1s":                "warmup/2s",
		"5/2s,warmup=1s,cold=1.5":       "warmup/2s,cold=1.5",
		"5/1d,algo=window":              "window/1d",
		"5/month,tz=-01:30,block=1s":    "window/month,tz=-01:30",
		"5/60s,algo=slide,buckets=6":    "slide/1m,buckets=6",
		"1/1000ms,algo=log":             "log/1s",
		"1/10s,algo=window,align=clock": "window/10s,align=clock",
	} {
		if got := string(mustLiteral(t, text).Shape.AppendText(nil)); got != want {
			t.Errorf("the slot of %s is %s, want %s", text, got, want)
		}
	}
}

func TestParseLimitErrors(t *testing.T) {
	const (
		number   = "expected 1 to 9007199254740991"
		bursts   = "expected 1 to 2147483647"
		length   = "expected 1us to 366d"
		warm     = "expected 1ms to 24d, in whole ms"
		cold     = "expected 1.01 to 100, with 2 decimals at most"
		unit     = "unknown unit, expected us, ms, s, m, h or d"
		period   = unit + ", such as 1m, or second, minute, hour, day, week, month or year"
		comma    = "nothing follows a comma; several limits stand apart by blanks"
		calendar = "needs a window of the calendar, such as 100/day, or algo=window,align=clock"
		options  = "expected algo, burst, warmup, cold, align, from, tz, buckets, name, block, block-at or shadow"
		zone     = "expected ±hh:mm, from -12:00 to +14:00, or a zone such as Europe/Berlin"
		days     = "needs day, week, month or year, or align=clock with a period of whole days"
	)
	const froms = "expected hh:mm, with week also a day, such as wed/04:00, and with month also one of 1 to 31, such as 15/04:00"
	algos := "expected " + cell.AlgoNames(func(cell.Algo) bool { return true }) // ExampleLimitError has them
	for _, c := range []struct{ text, part, of, want string }{
		{"", "limit", "", "expected count/period, such as 100/1m"},
		{"100", "limit", "100", "expected count/period, such as 100/1m"},
		{"100,algo=log/1m", "limit", "100,algo=log/1m", "expected count/period, such as 100/1m"},
		{"/1m", "count", "", number},
		{"1/1m,warmup=", "warmup", "", warm},
		{"1/1m,warmup=1s,burst=2", "burst", "2", "with warmup it is 1"},
		{"1/1m,warmup=999us", "warmup", "999us", warm},
		{"1/1m,warmup=1001us", "warmup", "1001us", warm},
		{"1/1m,warmup=25d", "warmup", "25d", warm},
		{"1/1m,warmup=1s,warmup=1s", "option", "warmup=1s", "warmup is given twice"},
		{"1/1m,warmup=1s,algo=log", "option", "warmup", "needs algo=gcra"},
		{"1/month,warmup=1s", "option", "warmup", "needs algo=gcra"},
		{"1/1m,algo=warmup", "algo", "warmup", algos},
		{"1/1m,algo=", "algo", "", algos},
		{"1/1m,cold=3", "option", "cold", "needs warmup"},
		{"1/1m,warmup=1s,cold=1", "cold", "1", cold},
		{"1/1m,warmup=1s,cold=100.01", "cold", "100.01", cold},
		{"1/1m,warmup=1s,cold=2.", "cold", "2.", cold},
		{"1/1m,warmup=1s,cold=.5", "cold", ".5", cold},
		{"1/1m,warmup=1s,cold=2.555", "cold", "2.555", cold},
		{"1/1m,warmup=1s,cold=1e9", "cold", "1e9", cold},
		{"1/1m,warmup=1s,cold=inf", "cold", "inf", cold},
		{"1/1m,warmup=1s,cold=-2", "cold", "-2", cold},
		{"0/1m", "count", "0", number},
		{"-1/1m", "count", "-1", number},
		{"+1/1m", "count", "+1", number},
		{"1.5/1m", "count", "1.5", number},
		{" 1/1m", "count", " 1", number},
		{"9007199254740992/month", "count", "9007199254740992", number},
		{"2147483648/1d", "count", "2147483648", "more than 2147483647 needs algo=window or slide"},
		{"2147483648/1d,algo=conc", "count", "2147483648", "more than 2147483647 needs algo=window or slide"},
		{"2147483648/1d,warmup=1s", "count", "2147483648", "more than 2147483647 needs algo=window or slide"},
		{"18446744073709551617/1d", "count", "18446744073709551617", number},
		{"٣/1d", "count", "٣", number},
		{"11/1us", "count", "11", "more than 10000000 a second needs algo=window or slide"},
		{"10000001/1s,algo=log", "count", "10000001", "more than 10000000 a second needs algo=window or slide"},
		{"1/", "period", "", period},
		{"1/1", "period", "1", period},
		{"1/1w", "period", "1w", period},
		{"1/1m/1s", "period", "1m/1s", period},
		{"1/1M", "period", "1M", period},
		{"1/Month", "period", "Month", period},
		{"1/2month", "period", "2month", period},
		{"1/1 m", "period", "1 m", period},
		{"1/1µs", "period", "1µs", period},
		{"1/-1s", "period", "-1s", period},
		{"1/1ns", "period", "1ns", period},
		{"1/0s", "period", "0s", length},
		{"1/367d", "period", "367d", length},
		{"1/31622401s", "period", "31622401s", length},
		{"1/99999999999999999999d", "period", "99999999999999999999d", length},
		{"1/1m,", "option", "", comma},
		{"1/1m,,shadow", "option", "", comma},
		{"1/1m, shadow", "option", " shadow", options},
		{"1/1m,Shadow", "option", "Shadow", options},
		{"1/1m,count=1", "option", "count=1", options},
		{"1/1m,=", "option", "=", options},
		{"1/1m,shadow=", "option", "shadow=", "shadow takes no value"},
		{"1/1m,shadow=1", "option", "shadow=1", "shadow takes no value"},
		{"1/1m,shadow,shadow", "option", "shadow", "shadow is given twice"},
		{"1/1m,burst=2,burst=2", "option", "burst=2", "burst is given twice"},
		{"1/1m,algo=log,algo=log", "option", "algo=log", "algo is given twice"},
		{"1/1m,algo", "algo", "", algos},
		{"1/1m,algo=GCRA", "algo", "GCRA", algos},
		{"1/month,algo=log", "algo", "log", "a period of the calendar needs algo=window"},
		{"1/month,algo=gcra", "algo", "gcra", "a period of the calendar needs algo=window"},
		{"1/1m,burst", "burst", "", bursts},
		{"1/1m,burst=0", "burst", "0", bursts},
		{"1/1m,burst=2147483648", "burst", "2147483648", bursts},
		{"1/366d,burst=292", "burst", "292", "takes more than 292 years to flow back"},
		{"1/1h,burst=2147483647", "burst", "2147483647", "takes more than 292 years to flow back"},
		{"1/1m,algo=log,burst=2", "option", "burst", "needs algo=gcra"},
		{"1/month,burst=2", "option", "burst", "needs algo=gcra"},
		{"1/1m,align=clock", "option", "align", "needs algo=window"},
		{"1/1m,algo=window,align=", "align", "", "expected clock"},
		{"1/1m,algo=window,align=edge", "align", "edge", "expected clock"},
		{"1/day,from=", "from", "", froms}, {"1/day,from=4:00", "from", "4:00", froms}, {"1/day,from=24:00", "from", "24:00", froms},
		{"1/day,from=04:60", "from", "04:60", froms}, {"1/day,from=mon", "from", "mon", froms},
		{"1/day,from=/04:00", "from", "/04:00", froms},
		{"1/week,from=1", "from", "1", froms}, {"1/week,from=Mon", "from", "Mon", froms}, {"1/week,from=mon/", "from", "mon/", froms},
		{"1/week,from=mon/4", "from", "mon/4", froms}, {"1/month,from=0", "from", "0", froms}, {"1/month,from=32", "from", "32", froms},
		{"1/month,from=mon", "from", "mon", froms}, {"1/month,from=15/", "from", "15/", froms},
		{"1/month,from=15/04:00/", "from", "15/04:00/", froms},
		{"1/year,from=04:00", "from", "04:00", "needs day, week or month, such as 100/day"},
		{"1/1d,algo=window,align=clock,from=04:00", "from", "04:00", "needs day, week or month, such as 100/day"},
		{"1/month,align=clock", "align", "clock", "a period of the calendar is always aligned"},
		{"1/1m,tz=+00:00", "option", "tz", calendar},
		{"1/1m,algo=window,tz=+01:00", "tz", "+01:00", "needs align=clock, or a period of the calendar"},
		{"1/month,tz=+14:01", "tz", "+14:01", zone},
		{"1/month,tz=-12:01", "tz", "-12:01", zone},
		{"1/month,tz=+08:60", "tz", "+08:60", zone},
		{"1/month,tz=08:00", "tz", "08:00", zone},
		{"1/month,tz=+8:00", "tz", "+8:00", zone},
		{"1/month,tz=+08-00", "tz", "+08-00", zone},
		{"1/month,tz", "tz", "", zone},
		{"1/month,tz=+", "tz", "+", zone},
		{"1/month,tz=Europe/Berlin,tz=UTC", "option", "tz=UTC", "tz is given twice"},
		{"1/1m,tz=Europe/Berlin", "option", "tz", calendar},
		{"1/1d,algo=window,tz=Europe/Berlin", "tz", "Europe/Berlin", days},
		{"1/25h,algo=window,align=clock,tz=Europe/Berlin", "tz", "Europe/Berlin", days},
		{"1/hour,tz=Europe/Berlin", "tz", "Europe/Berlin", days},
		{"1/minute,tz=Asia/Kolkata", "tz", "Asia/Kolkata", days},
		{"1/second,tz=Etc/UTC", "tz", "Etc/UTC", days},
		{"1/1d,algo=window,tz=UTC", "tz", "UTC", "needs align=clock, or a period of the calendar"},
		{"1/month,tz=Local", "tz", "Local", zone},
		{"1/month,tz=Europe/Atlantis", "tz", "Europe/Atlantis", zone},
		{"1/month,tz=../Europe/Berlin", "tz", "../Europe/Berlin", zone},
		{"1/month,tz=/Europe/Berlin", "tz", "/Europe/Berlin", zone},
		{"1/month,tz=\\Europe\\Berlin", "tz", "\\Europe\\Berlin", zone},
		{"1/1m,buckets=6", "option", "buckets", "needs algo=slide"},
		{"1/1m,algo=slide,buckets=1", "buckets", "1", "expected 2 to 128"},
		{"1/1m,algo=slide,buckets=129", "buckets", "129", "expected 2 to 128"},
		{"1/127us,algo=slide,buckets=128", "buckets", "128", "each must be 1us or longer"},
		{"1/1m,block-at=full", "option", "block-at", "needs block"},
		{"1/1m,block=1s,block-at=empty", "block-at", "empty", "expected denied or full"},
		{"1/1m,block", "block", "", unit},
		{"1/1m,block=0s", "block", "0s", length},
		{"1/1m,block=367d", "block", "367d", length},
		{"1/1m,block=month", "block", "month", unit},
		{"1/1m,\r\n+OK", "option", "??+OK", options},
		{"1/1m,\x00\x7f\u2028\xff", "option", "???\uFFFD", options},
		{"1/" + strings.Repeat("é", 40), "period", strings.Repeat("é", 32) + "…", period},
		{"1/" + strings.Repeat("é", 32), "period", strings.Repeat("é", 32), period},
		{"1/x" + strings.Repeat("é", 40), "period", "x" + strings.Repeat("é", 31) + "…", period},
	} {
		l, err := cell.ParseLimit(c.text)
		e, ok := errors.AsType[*cell.LimitError](err)
		if want := (cell.LimitError{Part: c.part, Text: c.of, Want: c.want}); !ok || *e != want || l != (cell.Limit{}) {
			t.Errorf("%q: %v, %v; want %v", c.text, l, err, want.Error())
		}
	}
	if _, err := cell.ParseLimit("0/1m"); err.Error() != "invalid limit: count '0': expected 1 to 9007199254740991" {
		t.Error(err)
	}
}

// A long text costs no more than a look at it.
func TestParseLimitIsCheapOnLongTexts(t *testing.T) {
	for _, part := range []string{"1", "/", ",", "1/1m", ",burst=1", "1/1m,", "=", "é", "\xff", "\n", "0"} {
		for _, head := range []string{"", "1/", "1/1m,", "1/1m,algo=", "1/1m,burst=", "1/month,tz=", "1/1m,block="} {
			text := head + strings.Repeat(part, 1<<20/len(part))
			if n := testing.AllocsPerRun(1, func() { wantOneLine(t, text) }); n > 20 {
				t.Errorf("%q and 1 MB of %q: %v allocations", head, part, n)
			}
		}
	}
}

// wantOneLine parses, and wants an error to be one short line.
func wantOneLine(t testing.TB, text string) (cell.Limit, bool) {
	l, err := cell.ParseLimit(text)
	if err == nil {
		return l, true
	}
	if line := err.Error(); len(line) > 300 || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
		t.Fatalf("%q", line)
	}
	return l, false
}

func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{
		"100/1m", "10000/month,tz=+08:00", "5/1s,algo=log,shadow", "9/1s,algo=slide,buckets=2,block=1h", "9/d,burst=3",
		"1/7d,algo=window,align=clock,tz=-03:30", "1/day,tz=Asia/Kolkata", "1/1m,\r\n", "2147483647/366d,burst=2147483647", "é/é,é=é",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := wantOneLine(t, text)
		if !ok {
			return
		}
		canonical := l.String()
		if again, err := cell.ParseLimit(canonical); err != nil || again != l || again.String() != canonical {
			t.Fatalf("%q is %s, and that is %v, %v", text, canonical, again, err)
		}
	})
}

// Every literal is what its canonical form says, and what it would take to decide with it is there.
func TestEveryLiteralReadsBack(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		if again := mustLiteral(t, l.String()); again != l {
			t.Fatalf("%v reads as %+v, want %+v", l, again, l)
		}
		if d := attempt(&l, cell.State{}, aDayIn2027, l.Capacity(), cell.Take); d.Limited || d.Remaining != 0 {
			t.Fatalf("%v: a new key: %+v", l, d)
		}
	})
}
