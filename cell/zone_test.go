package cell_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/internal/celldtest"
)

// zones change their clocks at midnight, around it, by half an hour, over a day, or not at all.
var zones = []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Asia/Beirut", "Africa/Cairo",
	"Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "America/Scoresbysund"}

func drawZoned(t *rapid.T) cell.Limit {
	zone := rapid.SampledFrom(zones).Draw(t, "named zone")
	period := rapid.SampledFrom([]string{"day", "week", "month", "year", "1d,algo=window,align=clock", "3d,algo=window,align=clock"}).
		Draw(t, "period")
	return mustLiteral(t, fmt.Sprintf("%d/%s,tz=%s", drawCount(t, true, 86_400e9), period, zone))
}

// zoneOf is the zone that a limit names, "" and nil if it names none.
func zoneOf(l cell.Limit) (string, *time.Location) {
	_, name, _ := strings.Cut(string(l.Shape.AppendText(nil)), ",tz=")
	if name == "" || name[0] == '+' || name[0] == '-' {
		return "", nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return name, zone
}

// windowOn is the number of the window that the date belongs to on which clocks stand, by package time.
func windowOn(l cell.Limit, zone *time.Location, at int64) int64 {
	date := time.Unix(0, at).In(zone)
	year, month, day := date.Date()
	if from := time.Duration(l.From) * time.Minute; from > 0 {
		shown := time.Date(year, month, day, date.Hour(), date.Minute(), date.Second(), 0, time.UTC)
		if l.Unit.String() == "month" {
			last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
			begin := time.Date(year, month, min(int(l.From)/1440+1, last), 0, int(l.From)%1440, 0, 0, time.UTC)
			shown, from = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC), 0
			if time.Date(year, month, day, date.Hour(), date.Minute(), date.Second(), 0, time.UTC).Before(begin) {
				shown = shown.AddDate(0, -1, 0)
			}
		}
		date = shown.Add(-from)
		year, month, day = date.Date()
	}
	days := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86_400
	switch l.Unit.String() {
	case "week":
		return days - int64(date.Weekday()+6)%7
	case "month":
		return int64(year)*12 + int64(month)
	case "year":
		return int64(year)
	}
	return (days+3*366)/(l.PeriodNS/86_400e9) - 3*366/(l.PeriodNS/86_400e9) // rounded down, 1969 among it
}

// zonedWindowEnd looks at the clock every quarter of an hour until it first shows a date of a later window. It may have shown one already,
// and have gone back.
func zonedWindowEnd(l cell.Limit, zone *time.Location, now int64) int64 {
	const quarter, hour = 900e9, 4 * 900e9
	at := now / quarter * quarter
	window := windowOn(l, zone, now)
	for before := at; before >= max(0, at-2*hour); before -= quarter {
		window = max(window, windowOn(l, zone, before))
	}
	for windowOn(l, zone, at+30*hour) <= window {
		at += 24 * hour
	}
	for at <= now || windowOn(l, zone, at) <= window {
		at += quarter
	}
	return at
}

// edge is when the window of an instant ends.
func edge(l *cell.Limit, now int64) int64 {
	return now + int64(decide(l, &cell.State{}, now, 1, cell.Take).ResetAfterNS)
}

// One window follows another: each begins when clocks first show its date, and all instants in it have the same end. Calls are told that
// moment, and pass then.
func TestWindowsOfZones(t *testing.T) {
	begin, end := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, name := range zones {
		for _, period := range []string{"day", "week", "month", "year", "3d,algo=window,align=clock", "day,from=02:30",
			"week,from=wed/22:15", "month,from=15", "month,from=31/04:30"} {
			t.Run(name+"/"+period, func(t *testing.T) {
				t.Parallel()
				l := mustLiteral(t, "2/"+period+",tz="+name)
				_, zone := zoneOf(l)
				for from := edge(&l, begin); from < end; {
					to := edge(&l, from)
					if want := zonedWindowEnd(l, zone, from); to != want {
						t.Fatalf("the window from %v ends at %v, want %v", time.Unix(0, from).In(zone), time.Unix(0, to).In(zone),
							time.Unix(0, want).In(zone))
					}
					wantOneWindow(t, &l, from, to)
					from = to
				}
			})
		}
	}
}

func wantOneWindow(t *testing.T, l *cell.Limit, from, to int64) {
	for _, at := range []int64{from + 1, from + 1_800e9, from + (to-from)/3, to - 1_800e9, to - 1} {
		if got := edge(l, at); got != to {
			t.Fatalf("the window from %d to %d ends at %d by a call at %d", from, to, got, at)
		}
	}
	var st cell.State
	at := to - 1_000
	decide(l, &st, at, 2, cell.Take)
	if d := decide(l, &st, at, 1, cell.Take); d.RetryAfterNS != 1_000 {
		t.Fatalf("%d before %d: %+v", 1_000, to, d)
	}
	if wait := l.Book(&st, at, 1); wait != 1_000 {
		t.Fatalf("booked %d before %d for %d later", 1_000, to, wait)
	}
	if d := attempt(l, st, at, 1, cell.Take); d.RetryAfterNS != 1_000 || !attempt(l, st, to-1, 1, cell.Take).Limited {
		t.Fatalf("%d before %d, behind a booked call: %+v", 1_000, to, d)
	}
	if d := attempt(l, st, to, 1, cell.Take); d.Limited || d.Remaining != 0 || int64(d.ResetAfterNS) != edge(l, to)-to {
		t.Fatalf("at %d, beside a booked call: %+v", to, d)
	}
}

func TestDaysOfZones(t *testing.T) {
	for _, c := range []struct{ limit, begin, end string }{
		{"1/day,tz=Europe/Berlin", "2027-03-28T00:00:00+01:00", "2027-03-29T00:00:00+02:00"}, // 23 hours
		{"1/day,tz=Europe/Berlin", "2027-10-31T00:00:00+02:00", "2027-11-01T00:00:00+01:00"}, // 25
		{"1/day,tz=Australia/Lord_Howe", "2027-10-03T00:00:00+10:30", "2027-10-04T00:00:00+11:00"},
		{"1/day,tz=America/Sao_Paulo", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}, // no midnight
		{"1/day,tz=Asia/Beirut", "2027-03-28T01:00:00+03:00", "2027-03-29T00:00:00+03:00"},
		{"1/day,tz=America/Havana", "2027-11-07T00:00:00-04:00", "2027-11-08T00:00:00-05:00"},   // two midnights
		{"1/day,tz=America/St_Johns", "2006-10-29T00:00:00-02:30", "2006-10-30T00:00:00-03:30"}, // after the first minute, the hour before again
		{"1/day,tz=Pacific/Apia", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},     // 24 hours, the 30th is skipped
		{"1/week,tz=Europe/Berlin", "2027-03-22T00:00:00+01:00", "2027-03-29T00:00:00+02:00"},
		{"1/month,tz=Asia/Kathmandu", "2027-02-01T00:00:00+05:45", "2027-03-01T00:00:00+05:45"},
		{"1/year,tz=America/New_York", "2028-01-01T00:00:00-05:00", "2029-01-01T00:00:00-05:00"},
		{"1/2d,algo=window,align=clock,tz=Asia/Kolkata", "1970-01-01T00:00:00+05:30", "1970-01-03T00:00:00+05:30"},
		{"1/7d,algo=window,align=clock,tz=Europe/Berlin", "2027-03-25T00:00:00+01:00", "2027-04-01T00:00:00+02:00"}, // Thursdays
	} {
		begin, err1 := time.Parse(time.RFC3339, c.begin)
		end, err2 := time.Parse(time.RFC3339, c.end)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		l := mustLiteral(t, c.limit)
		from := max(0, begin.UnixNano())
		if got := edge(&l, from); got != end.UnixNano() || from > 0 && edge(&l, from-1) != from {
			t.Errorf("%s from %s: ends %v, and the one before %v", c.limit, c.begin, time.Unix(0, got).UTC(),
				time.Unix(0, edge(&l, from-1)).UTC())
		}
	}
}

// Windows that were booked while clocks change are given back as they were booked.
func TestGivingBackOverChangesOfClocks(t *testing.T) {
	for _, name := range zones {
		for _, c := range []struct {
			period  string
			from    time.Time
			windows int
		}{
			{"day", time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC), 2_000},
			{"day", time.Date(2011, 12, 1, 12, 0, 0, 0, time.UTC), 100},
			{"2d,algo=window,align=clock", time.Date(2018, 3, 1, 12, 0, 0, 0, time.UTC), 2_000},
			{"week", time.Date(2018, 3, 1, 12, 0, 0, 0, time.UTC), 700},
			{"month", time.Date(2018, 3, 1, 12, 0, 0, 0, time.UTC), 700},
		} {
			l, st, now := mustLiteral(t, "2/"+c.period+",tz="+name), cell.State{}, c.from.UnixNano()
			var waits []uint64
			for range 2 * c.windows {
				waits = append(waits, l.Book(&st, now, 1))
			}
			for n := len(waits) - 1; n >= 0; n -= 1 + c.windows/30 {
				again, back := clone(st), int64(len(waits)-n)
				if given := l.Give(&again, now, back); given != back || l.Book(&again, now, 1) != waits[n] {
					t.Fatalf("%v: of %d given back %d, booked for %+v, want %d later", l, back, given, again, waits[n])
				}
			}
		}
	}
}

// Centuries of booked windows are given back at once.
func TestGivingBackCenturiesOfWindows(t *testing.T) {
	for limit, most := range map[string]time.Duration{"day": 24 * time.Hour, "month": 28 * 24 * time.Hour} {
		celldtest.Again(t, func(string) string {
			l, st, err := cell.ParseState("limit=1/" + limit + ",tz=Europe/Berlin until=9200000000000000000 used=1 before=1")
			if err != nil {
				t.Fatal(err)
			}
			begun := celldtest.CPUTime(t)
			given := l.Give(&st, aDayIn2027, cell.MaxCost)
			took := celldtest.CPUTime(t) - begun
			if windows := int64(7_400_000_000_000_000_000 / most); given > windows+1 || given < windows*9/10 || st.B != 0 {
				t.Errorf("%v: %d given back, %+v", l, given, st)
			}
			if took > 30*time.Millisecond {
				return fmt.Sprintf("%v: took %v of CPU time", l, took)
			}
			return ""
		})
	}
}

// Without a zone of a name, windows begin at the same times.
func TestFromWithoutANamedZone(t *testing.T) {
	for _, period := range []string{"day,from=04:00", "week,from=wed/22:15", "week,from=sun", "month,from=15", "month,from=30/04:30"} {
		for zone, east := range map[string]int{"": 0, ",tz=+05:45": 5*3600 + 45*60, ",tz=-12:00": -12 * 3600} {
			l := mustLiteral(t, "2/"+period+zone)
			begin := time.Date(2026, 12, 30, 3, 0, 0, 0, time.UTC).UnixNano()
			for from := edge(&l, begin); from < begin+500*86_400e9; {
				to := edge(&l, from)
				if want := zonedWindowEnd(l, time.FixedZone("", east), from); to != want {
					t.Fatalf("%v: the window from %v ends at %v, want %v", l, time.Unix(0, from), time.Unix(0, to), time.Unix(0, want))
				}
				wantOneWindow(t, &l, from, to)
				from = to
			}
		}
	}
}

// What was used stays used when only the zone changes, until the window of the new zone ends.
func TestAnotherZoneKeepsWhatWasUsed(t *testing.T) {
	const noon = aDayIn2027 + 4*3_600e9
	for _, tz := range [][2]string{
		{"", "Europe/Berlin"}, {"Europe/Berlin", "Asia/Kolkata"}, {"Europe/Berlin", "Europe/Berlin,from=04:00"},
		{"Asia/Tokyo,from=20:00", ""}, {"Asia/Kolkata", "-05:00"}, {"America/New_York", "UTC"},
	} {
		literal := func(count int, tz string) cell.Limit {
			return mustLiteral(t, strings.TrimSuffix(fmt.Sprintf("%d/day,tz=%s", count, tz), ",tz="))
		}
		old, l, st := literal(10, tz[0]), literal(20, tz[1]), cell.State{}
		decide(&old, &st, noon, 7, cell.Take)
		if !l.Alike(old.Shape) || l.Shape == old.Shape {
			t.Fatalf("%v and %v", old, l)
		}
		l.Carry(&st, &old, noon, noon)
		if d := attempt(&l, st, noon, 0, cell.Peek); d.Remaining != 13 || int64(st.A) != edge(&l, noon) {
			t.Errorf("%v to %v: %+v, %+v", old, l, d, st)
		}
		text := string(l.AppendState(nil, &st))
		if of, again, err := cell.ParseState(text); err != nil || of.Shape != l.Shape || !equal(again, st) {
			t.Errorf("%s is read as %v %+v, %v", text, of, again, err)
		}
		l.Carry(&st, &l, noon, noon)
		over := int64(st.A)
		old.Carry(&st, &l, over, over)
		if st.B != 0 {
			t.Errorf("%v to %v, after its window: %+v", l, old, st)
		}
	}
}

func TestNamesOfZones(t *testing.T) {
	for text, canonical := range map[string]string{
		"5/day,tz=Europe/Berlin":     "5/day,tz=Europe/Berlin",
		"5/day,tz=+02:00,from=04:00": "5/day,from=04:00,tz=+02:00", "5/day,from=00:00": "5/day", "5/week,from=mon": "5/week",
		"5/week,from=mon/23:59": "5/week,from=23:59", "5/week,from=sun/00:00": "5/week,from=sun",
		"5/week,from=tue/04:00": "5/week,from=tue/04:00",
		"5/month,from=1":        "5/month", "5/month,from=01/04:00": "5/month,from=04:00", "5/month,from=31": "5/month,from=31",
		"5/month,from=31/23:59,tz=Asia/Kolkata":                            "5/month,from=31/23:59,tz=Asia/Kolkata",
		"5/1d,tz=America/Argentina/ComodRivadavia,algo=window,align=clock": "5/1d,algo=window,align=clock,tz=America/Argentina/ComodRivadavia",
		"5/48h,algo=window,align=clock,tz=Etc/GMT+5,shadow":                "5/2d,algo=window,align=clock,tz=Etc/GMT+5,shadow",
		"5/week,block=1h,tz=America/Port-au-Prince":                        "5/week,tz=America/Port-au-Prince,block=1h",
		"5/month,tz=EST5EDT":                                               "5/month,tz=EST5EDT",
		"5/year,tz=GB-Eire":                                                "5/year,tz=GB-Eire",
		"5/year,tz=UTC":                                                    "5/year",
		"5/hour,tz=UTC":                                                    "5/hour",
		"5/1m,algo=window,align=clock,tz=UTC":                              "5/1m,algo=window,align=clock",
	} {
		l, err := cell.ParseLimit(text)
		if err != nil || l.String() != canonical || cell.ShapeOf(l.Code(), l.Span()) != l.Shape {
			t.Errorf("%s is %v, %v; want %s", text, l, err, canonical)
		}
		if again := mustLiteral(t, canonical); again != l {
			t.Errorf("%s is %+v, and %s is %+v", text, l, canonical, again)
		}
	}
}

// A client may try as many names as it likes: only those of the database are kept, and each once.
func TestOnlyZonesAreKept(t *testing.T) {
	number := func(name string) uint32 {
		l := mustLiteral(t, "1/day,tz="+name)
		return l.Code() >> 16
	}
	number("Asia/Tokyo")
	before := number("Asia/Seoul")
	names := []string{
		"", "Local", "local", "utc", "europe/berlin", "Europe", "Europe/", "Europe/Atlantis", "/Europe/Berlin", `\Europe\Berlin`,
		`Europe\Berlin`, "../zoneinfo/Europe/Berlin", "Europe/../Europe/Berlin", "Europe/..", "Europe/./Berlin", "Europe//Berlin",
		"Europe/Berlin/", "posix/Europe/Berlin", "right/Europe/Berlin", "localtime", "posixrules", "zone.tab", "Europe/Berlin\x00", "É",
		"/usr/share/zoneinfo/Europe/Berlin", "A" + strings.Repeat("/A", 500_000),
	}
	for i := range 1_000 {
		names = append(names, fmt.Sprint("Europe/Berlin", i), fmt.Sprint("Z", i))
	}
	for _, name := range names {
		if _, err := cell.ParseLimit("1/day,tz=" + name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
	if again, next := number("Asia/Seoul"), number("Asia/Manila"); again != before || next != before+1 {
		t.Errorf("zone %d is %d now, and the next is %d", before, again, next)
	}
}

// A zone does not keep the text that named it.
func TestZonesKeepNoTexts(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, name := range []string{"Pacific/Fiji", "Pacific/Guam", "Pacific/Niue", "Pacific/Truk"} {
		if _, err := cell.ParseLimit("1/day,tz=" + name + "," + strings.Repeat("x", 16<<20)); err == nil {
			t.Error("an option of 16 MB")
		}
	}
	if after := heap(); after > before+16<<20 {
		t.Errorf("%d bytes became %d", before, after)
	}
}

// An edge costs no memory.
func TestEdgesOfZonesAllocateNothing(t *testing.T) {
	for _, period := range []string{"day", "week", "month", "year", "3d,algo=window,align=clock"} {
		l, st, now := mustLiteral(t, "2/"+period+",tz=America/New_York"), cell.State{}, int64(aDayIn2027)
		if n := testing.AllocsPerRun(100, func() {
			l.Decide(&st, now, 2, cell.Take)
			l.Book(&st, now, 2)
			l.Decide(&st, now, 1, cell.Take)
			now += 5 * 86_400e9
		}); n != 0 {
			t.Errorf("%s: %v allocations", period, n)
		}
	}
}

// BenchmarkEdge is a call that begins a window.
func BenchmarkEdge(b *testing.B) {
	for _, text := range []string{"2/day", "2/month", "2/day,tz=Europe/Berlin", "2/month,tz=America/New_York", "2/day,tz=Asia/Kolkata"} {
		b.Run(text, func(b *testing.B) {
			l, now := mustLiteral(b, text), int64(aDayIn2027)
			for b.Loop() {
				var st cell.State
				if d := l.Decide(&st, now, 1, cell.Take); d.Remaining != 1 {
					b.Fatalf("%+v", d)
				}
				now += 1e9
			}
		})
	}
}
