package cell_test

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
)

// eachBookable runs a property for each algorithm that can book.
func eachBookable(t *testing.T, property func(*rapid.T, algorithm, cell.Limit)) {
	for _, a := range algorithms {
		if a.bookable {
			t.Run(a.name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { property(t, a, drawOptions(t, a.draw(t))) })
			})
		}
	}
}

// booker is a model that knows calls that are booked ahead.
type booker interface {
	model
	book(from, at uint64, cost int64) // from: now, or the end of a block
}

func TestBook(t *testing.T) {
	const s, minute, day = int64(time.Second), int64(time.Minute), int64(24 * time.Hour)
	for _, c := range []struct {
		limit, begin string
		cost         int64
		waits        []int64
	}{
		{"10/1s", "2027-01-15T08:00:00.25Z", 4, []int64{0, 0, s / 5, s * 3 / 5, s}},
		{"10/1s,algo=window", "2027-01-15T08:00:00.25Z", 5, []int64{0, 0, s, s, 2 * s}},
		{"10/1s,algo=window", "2027-01-15T08:00:00.25Z", 7, []int64{0, s, 2 * s, 3 * s}},
		{"10/1s,algo=window", "2027-01-15T08:00:00.25Z", 10, []int64{0, s, 2 * s}},
		{"10/1m,algo=window,align=clock", "2027-01-15T08:00:59Z", 5, []int64{0, 0, s, s, s + minute}},
		{"1/month,tz=+08:00", "2027-01-31T15:59:59Z", 1, []int64{0, s, s + 28*day, s + 59*day, s + 89*day}},
		{"1/year", "2027-12-31T23:59:59Z", 1, []int64{0, s, s + 366*day, s + 731*day}},
	} {
		l := mustLiteral(t, c.limit)
		begin, err := time.Parse(time.RFC3339, c.begin)
		if err != nil {
			t.Fatal(err)
		}
		now, st := begin.UnixNano(), cell.State{}
		var waits []int64
		for range c.waits {
			waits = append(waits, int64(l.Book(&st, now, c.cost)))
		}
		if !slices.Equal(waits, c.waits) {
			t.Errorf("%s: %v, want %v", c.limit, waits, c.waits)
		}
		before := st
		if wait := l.Book(&st, now, l.Capacity()+1); wait != cell.Never || !equal(st, before) {
			t.Errorf("%s: more than ever passes waits %d, %+v", c.limit, wait, st)
		}
	}
}

// Time takes each window that ends off what is booked.
func TestBookedWindowsRollOver(t *testing.T) {
	const s = int64(time.Second)
	l, st := mustLiteral(t, "10/1s,algo=window"), cell.State{}
	now := int64(aDayIn2027)
	for range 25 {
		l.Book(&st, now, 1)
	}
	for _, c := range []struct{ after, cost, retry, remaining, reset int64 }{
		{0, 1, 2 * s, 0, 3 * s},
		{0, 6, 3 * s, 0, 3 * s},
		{s, 5, s, 0, 2 * s},
		{2*s - 1, 5, 1, 0, s + 1},
		{2 * s, 6, s, 5, s},
		{3 * s, 11, int64(-1), 10, 0},
	} {
		d := attempt(&l, st, now+c.after, c.cost, cell.Take)
		want := cell.Decision{Limited: true, Limit: 10, Remaining: c.remaining, RetryAfterNS: uint64(c.retry),
			ResetAfterNS: uint64(c.reset)}
		if d != want {
			t.Errorf("%d after %d: %+v, want %+v", c.cost, c.after, d, want)
		}
	}
	if given := l.Give(&st, now, 100); given != 25 || !equal(cell.State{A: st.A}, st) {
		t.Errorf("%d of 25 given back, %+v", given, st)
	}
}

// A forced call on a key that is booked for 292 years, behind a block, does not free it.
func TestForcedAfterBooked(t *testing.T) {
	l, st := mustLiteral(t, "1/10s,burst=922337203,block=1h"), cell.State{}
	l.Decide(&st, aDayIn2027, l.Capacity(), cell.Take)
	l.Decide(&st, aDayIn2027, 1, cell.Take)
	if wait := l.Book(&st, aDayIn2027, 2); wait == cell.Never {
		t.Fatalf("not booked: %+v", st)
	}
	before := st
	if d := l.Decide(&st, aDayIn2027, l.Capacity(), cell.Force); d.Remaining != 0 || !equal(before, st) {
		t.Errorf("%+v became %+v", before, st)
	}
}

// Every wait and every decision is the model's, and what passes, when its time has come, keeps to the bound of the algorithm and
// comes in order.
func TestBookIsTheModel(t *testing.T) {
	eachBookable(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		now := drawInstant(t)
		key := modelKey{Limit: l, model: a.model(l)}
		var st cell.State
		var d cell.Decision
		var passed []call
		changed := false // by Give or Force, which may lead past the bound
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now += drawPause(t, l, now, d) / rapid.SampledFrom([]int64{1, 8, math.MaxInt64}).Draw(t, "shorter")
			cost := drawCost(t, l, d)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if key.blocked > uint64(now) {
					continue
				}
				if got, want := l.Give(&st, now, cost), key.give(now, cost); got != want {
					t.Fatalf("%v at %d gives back %d of %d, and the model %d", l, now, got, cost, want)
				}
				changed = true
			case 1, 2, 3:
				mode := drawMode(t)
				if mode == cell.Force && !l.Holds(&st, now, cost) {
					mode = cell.Take
				}
				d = decide(&l, &st, now, cost, mode)
				if want := key.decide(now, cost, mode); d != want {
					t.Fatalf("%v at %d, cost %d, mode %d:\n got %+v\nwant %+v", l, now, cost, mode, d, want)
				}
				if mode == cell.Take && !d.Limited && cost > 0 {
					passed = append(passed, call{now, cost})
				}
				changed = changed || mode == cell.Force
			default:
				at := wantBook(t, l, &st, &key, now, cost)
				if at <= math.MaxInt64 && cost > 0 {
					passed = append(passed, call{int64(at), cost})
				}
				d = attempt(&l, st, now, 0, cell.Peek)
			}
		}
		if changed {
			return
		}
		if !slices.IsSortedFunc(passed, func(a, b call) int { return int(min(1, max(-1, a.at-b.at))) }) {
			t.Fatalf("%v: out of order: %v", l, passed)
		}
		a.bound(t, l, passed)
	})
}

func wantBook(t *rapid.T, l cell.Limit, st *cell.State, key *modelKey, now, cost int64) (at uint64) {
	before := clone(*st)
	forecast := l.Forecast(st, now, cost)
	if !equal(before, *st) {
		t.Fatalf("%v: a forecast changes %+v to %+v", l, before, *st)
	}
	wait := l.Book(st, now, cost)
	if forecast != wait {
		t.Fatalf("%v at %d: %d waits %d, and %d were forecast", l, now, cost, wait, forecast)
	}
	want := uint64(cell.Never)
	switch {
	case cost == 0:
		want = 0
	case cost <= l.Capacity():
		want = first(uint64(now), func(at uint64) bool { return key.used(at)+cost <= l.Capacity() && key.blocked <= at }) - uint64(now)
	}
	if wait == cell.Never && cost <= l.Capacity() { // because its end is out of reach
		debt := new(big.Int).SetUint64(max(before.A, uint64(now)) - uint64(now))
		if l.Algo == cell.GCRA {
			debt.Add(debt, new(big.Int).Mul(big.NewInt(intervalNS(l)), big.NewInt(cost)))
		}
		if debt.Cmp(big.NewInt(1<<60)) < 0 {
			t.Fatalf("%v at %d: %d never passes: %+v", l, now, cost, before)
		}
		want = cell.Never
	}
	if wait != want {
		t.Fatalf("%v at %d: %d waits %d, want %d: %+v", l, now, cost, wait, want, before)
	}
	if wait == cell.Never || cost == 0 {
		if !equal(before, *st) {
			t.Fatalf("%v at %d: %d waits %d, and %+v became %+v", l, now, cost, wait, before, *st)
		}
		return wait
	}
	at = uint64(now) + wait
	key.model.(booker).book(max(uint64(now), key.blocked), at, cost)
	wantAsBefore(t, l, before, *st, now, cost)
	return at
}

// wantAsBefore: what was booked and is given back leaves no trace.
func wantAsBefore(t *rapid.T, l cell.Limit, before, after cell.State, now, cost int64) {
	if given := l.Give(&after, now, cost); given != cost {
		t.Fatalf("%v at %d: booked %d, and %d given back", l, now, cost, given)
	}
	for _, later := range []int64{0, 1, l.PeriodNS - 1, l.PeriodNS, l.PeriodNS + 1} {
		for _, cost := range []int64{0, 1, l.Capacity()} {
			was, is := attempt(&l, before, now+later, cost, cell.Peek), attempt(&l, after, now+later, cost, cell.Peek)
			if was != is || l.Forecast(&before, now+later, cost) != l.Forecast(&after, now+later, cost) {
				t.Fatalf("%v: cost %d, %d after a booking at %d was given back:\n got %+v\nwant %+v", l, cost, later, now, is, was)
			}
		}
	}
}

// Millions of booked windows are given back at once.
func TestGivingBackMillionsOfWindows(t *testing.T) {
	l, st, err := cell.ParseState("limit=1/1us,algo=window until=1800000900000000000 used=1 before=1")
	if err != nil {
		t.Fatal(err)
	}
	if given := l.Give(&st, aDayIn2027, 800_000_000); given != 800_000_000 {
		t.Errorf("%d given back", given)
	}
	if d := attempt(&l, st, aDayIn2027, 1, cell.Take); d.RetryAfterNS != 100e9 {
		t.Errorf("%+v", d)
	}
	if given := l.Give(&st, aDayIn2027, cell.MaxCost); given != 100_000_000 || st.B != 0 {
		t.Errorf("%d given back, %+v", given, st)
	}
}

// Nothing is booked past the end of time.
func TestBookingsEnd(t *testing.T) {
	for _, text := range []string{"1/366d", "1/366d,algo=window", "1/year,tz=-12:00", "1/month,tz=+14:00"} {
		l, st := mustLiteral(t, text), cell.State{}
		var last uint64
		for range 5000 {
			wait := l.Book(&st, aDayIn2027, 1)
			if wait < last {
				t.Fatalf("%s: %d after %d", text, wait, last)
			}
			last = wait
		}
		if last != cell.Never {
			t.Errorf("%s: %d, and no end", text, last)
		}
		written := string(l.AppendState(nil, &st))
		if _, _, err := cell.ParseState(written); err != nil {
			t.Errorf("%s: %v", written, err)
		}
	}
}

// When the wall clock is set, booked windows are as many as before, or fewer, and those of the new time.
func TestBookedWindowsAreRealigned(t *testing.T) {
	for _, text := range []string{"2/1m,algo=window,align=clock", "2/month,tz=+08:00", "2/day", "2/day,tz=Europe/Berlin"} {
		l := mustLiteral(t, text)
		for _, by := range []int64{0, 1, -1, l.PeriodNS, -l.PeriodNS, l.PeriodNS / 3, -l.PeriodNS / 3, -12 * l.PeriodNS} {
			var st cell.State
			now := int64(aDayIn2027) + l.PeriodNS/2
			for range 5 {
				l.Book(&st, now, 1)
			}
			was := attempt(&l, st, now, 2, cell.Peek)
			l.Realign(&st, by, now+by)
			is := attempt(&l, st, now+by, 2, cell.Peek)
			if end := st.A; windowEnd(l, int64(end)-1) != int64(end) {
				t.Errorf("%s set by %d: a window ends at %d", text, by, end)
			}
			if edge := uint64(windowEnd(l, now+by) - now - by); is.RetryAfterNS > max(was.RetryAfterNS, edge) {
				t.Errorf("%s set by %d: waits %d, and before %d", text, by, is.RetryAfterNS, was.RetryAfterNS)
			}
			if by == 0 && is != was || is.RetryAfterNS+uint64(l.PeriodNS*32/28) < was.RetryAfterNS {
				t.Errorf("%s set by %d: %+v became %+v", text, by, was, is)
			}
		}
	}
}

// A booking does not come before the end of a block, and only what was booked is given back.
func TestBookAfterABlock(t *testing.T) {
	const s = uint64(time.Second)
	l, st := mustLiteral(t, "10/1s,algo=window,block=10s"), cell.State{}
	decide(&l, &st, aDayIn2027, 10, cell.Take)
	decide(&l, &st, aDayIn2027, 1, cell.Take)
	for i := range 15 {
		if wait, want := l.Book(&st, aDayIn2027, 1), (10+uint64(i)/10)*s; wait != want {
			t.Errorf("call %d waits %d, want %d", i, wait, want)
		}
	}
	if given := l.Give(&st, aDayIn2027, 100); given != 15 || st.B != 0 {
		t.Errorf("%d given back, %+v", given, st)
	}
}

// A forced call counts in the window that it is in, and not in a booked one. It is known as long as only the next window is booked.
func TestForceBesideBookings(t *testing.T) {
	for _, c := range []struct{ booked, given, remaining int64 }{{15, 5, 0}, {15, 13, 3}, {25, 15, 0}, {25, 16, 1}} {
		l, st := mustLiteral(t, "10/1s,algo=window"), cell.State{}
		for range c.booked {
			l.Book(&st, aDayIn2027, 1)
		}
		if d := decide(&l, &st, aDayIn2027, 5, cell.Force); d.Limited || d.Remaining != 0 {
			t.Errorf("%+v", d)
		}
		if given := l.Give(&st, aDayIn2027, c.given); given != c.given {
			t.Errorf("%d of %d given back", given, c.given)
		}
		if d := attempt(&l, st, aDayIn2027, 0, cell.Peek); d.Remaining != c.remaining {
			t.Errorf("of %d booked %d are given back: %+v, want %d to remain", c.booked, c.given, d, c.remaining)
		}
	}
}
