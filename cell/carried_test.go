package cell_test

import (
	"testing"
	"time"

	"celld/cell"
)

// A limit that differs in nothing that a state is scaled by leaves it as it is.
func TestTheSameLimitCarriesNothing(t *testing.T) {
	for _, text := range []string{
		"5/1m", "5/1m,algo=window", "5/month", "5/1m,algo=slide", "5/1m,algo=slide,buckets=6", "5/1m,algo=log", "5/1m,algo=conc",
		"5/1m,warmup=1m",
	} {
		old, l := mustLiteral(t, text), mustLiteral(t, text+",block=1h,shadow")
		var st cell.State
		decide(&old, &st, aDayIn2027, 3, cell.Take)
		before := clone(st)
		if l.Carry(&st, &old, aDayIn2027, aDayIn2027); !equal(before, st) {
			t.Errorf("%s: %+v became %+v", text, before, st)
		}
	}
}

// A key whose calls are gone needs no room under another limit.
func TestNothingIsCarriedOfWhatIsGone(t *testing.T) {
	for _, to := range []string{"5/1h", "5/1m,algo=window", "5/1m,algo=slide", "6/1m,algo=slide,buckets=6", "5/1m,algo=log",
		"5/1m,algo=conc"} {
		old, l := mustLiteral(t, "5/1m"), mustLiteral(t, to)
		var st cell.State
		decide(&old, &st, aDayIn2027, 5, cell.Take)
		l.Carry(&st, &old, aDayIn2027+old.PeriodNS, aDayIn2027+old.PeriodNS)
		if !equal(st, cell.State{}) || st.Ring != nil {
			t.Errorf("to %s: %+v", to, st)
		}
	}
}

// A shift that is taken back leaves no trace, though sub-windows go by whole ones.
func TestShiftBack(t *testing.T) {
	for _, text := range []string{
		"5/1m,block=1h", "5/1m,algo=window,block=1h", "5/1m,algo=slide,block=1h", "50/1m,algo=slide,buckets=6,block=1h",
		"5/1m,algo=log,block=1h", "5/1m,algo=conc,block=1h",
	} {
		l := mustLiteral(t, text)
		var st cell.State
		now := int64(aDayIn2027)
		for range 20 {
			decide(&l, &st, now, 3, cell.Take)
			now += int64(7 * time.Second)
		}
		var denied cell.State // the first call was too much, and blocks the key
		decide(&l, &denied, aDayIn2027, 51, cell.Take)
		l.Shift(&denied, int64(time.Hour))
		if d := decide(&l, &denied, aDayIn2027+int64(time.Hour), 1, cell.Take); d.RetryAfterNS != uint64(time.Hour) {
			t.Errorf("%s: %+v, though it was blocked for an hour", text, d)
		}
		before := clone(st)
		for _, ns := range []time.Duration{0, 1, -1, 15 * time.Second, -15 * time.Second, 40 * time.Second, time.Hour, -1000 * time.Hour} {
			l.Shift(&st, int64(ns))
			if ns.Abs() > time.Minute && equal(st, before) {
				t.Errorf("%s: not shifted by %v", text, ns)
			}
			l.ShiftBack(&st, int64(ns))
			if !equal(st, before) {
				t.Fatalf("%s: shifted by %v and back: %+v, want %+v", text, ns, st, before)
			}
		}
	}
}

// A log of 64 calls is written as a whole. A longer one is written in parts, which cost no more than what is new.
func TestShortLogsAreToldWhole(t *testing.T) {
	l := mustLiteral(t, "100/1m,algo=log")
	var st cell.State
	for n := int64(1); n < 70; n++ {
		decide(&l, &st, aDayIn2027+n, 1, cell.Take)
		var parts []cell.Part
		for p := range l.Parts(&st, cell.Told{}) {
			parts = append(parts, p)
		}
		if whole := n <= 64; parts[0].Whole != whole || len(parts) == 1 != whole {
			t.Errorf("%d calls: %+v", n, parts)
		}
	}
}

// 128 bits of product over a small divisor: no count, however large a debt was, may end the process.
func TestTheLargestDebtIsCarried(t *testing.T) {
	for _, to := range []string{"1005/201us,burst=1", "1000/201us,burst=1", "1/201us,burst=1", "2010/201us,burst=2147483647"} {
		old, st, err := cell.ParseState("limit=2010/201us,burst=1 tat=11023372036854775807") // 100 ns a call; MaxInt64 after the instant
		if err != nil {
			t.Fatal(err)
		}
		l := mustLiteral(t, to)
		l.Carry(&st, &old, aDayIn2027, aDayIn2027)
		if d := decide(&l, &st, aDayIn2027, 1, cell.Take); !d.Limited || d.Remaining != 0 || d.ResetAfterNS < 1<<62 {
			t.Errorf("to %s: %+v", to, d)
		}
	}
}

// Once all is given back, there is nothing left to remember.
func TestNothingIsLeftOfWhatIsGivenBack(t *testing.T) {
	for _, text := range []string{"5/1m", "5/1m,algo=window", "5/1m,algo=slide", "6/1m,algo=slide,buckets=6", "5/1m,algo=log",
		"5/1m,algo=conc"} {
		l := mustLiteral(t, text)
		var st cell.State
		decide(&l, &st, aDayIn2027, 3, cell.Take)
		if end := l.EndNS(&st); end <= aDayIn2027 {
			t.Errorf("%s: 3 calls end at %d", text, end)
		}
		given := l.Give(&st, aDayIn2027, 3)
		if end := l.EndNS(&st); given != 3 || end > aDayIn2027 || end != 0 && l.Algo != cell.GCRA {
			t.Errorf("%s: %d of 3 given back, and the rest ends at %d", text, given, end)
		}
	}
}
