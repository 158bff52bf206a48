package cell_test

import (
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// The ring of a log doubles as it needs, up to the count, and Fit returns by how many words it grew.
func TestALogGrowsByDoubling(t *testing.T) {
	l := mustLiteral(t, "100/1m,algo=log")
	var st cell.State
	var sizes []int
	for i := range int64(100) {
		if words := l.Fit(&st, aDayIn2027+i, 1); words > 0 {
			sizes = append(sizes, words)
		}
		if d := l.Decide(&st, aDayIn2027+i, 1, cell.Take); d.Limited || d.Remaining != 99-i {
			t.Fatalf("call %d: %+v", i, d)
		}
	}
	sum := 0
	for i, words := range sizes {
		if sum += words; i > 0 && i < len(sizes)-1 && words != sum/2 {
			t.Errorf("grew by %v words", sizes)
		}
	}
	if sum != 200 || len(st.Ring) != 200 || len(sizes) > 6 {
		t.Errorf("%d words, grew by %v", len(st.Ring), sizes)
	}
	if n := testing.AllocsPerRun(10, func() { l.Fit(&st, aDayIn2027+100, 1) }); n != 0 {
		t.Errorf("%v allocations for no more room", n)
	}
	// All have passed: the room is used again.
	if words := l.Fit(&st, aDayIn2027+2*l.PeriodNS, 1); words != 0 {
		t.Errorf("grew by %d words, and all entries had passed", words)
	}
}

// Calls at the same nanosecond are one entry.
func TestALogMergesCallsOfOneInstant(t *testing.T) {
	l := mustLiteral(t, "1000/1m,algo=log")
	var st cell.State
	for range 500 {
		decide(&l, &st, aDayIn2027, 2, cell.Take)
	}
	if want := "limit=1000/1m,algo=log calls=1800000000000000000:1000"; string(l.AppendState(nil, &st)) != want || len(st.Ring) > 8 {
		t.Errorf("%s in %d words, want %s", l.AppendState(nil, &st), len(st.Ring), want)
	}
}

// Under a higher count a full log grows; under a lower one no entry is added to those it has.
func TestALogUnderAnotherCount(t *testing.T) {
	small, large := mustLiteral(t, "3/1m,algo=log"), mustLiteral(t, "100/1m,algo=log")
	var st cell.State
	now := int64(aDayIn2027)
	for range 3 {
		decide(&small, &st, now, 1, cell.Take)
		now++
	}
	large.Carry(&st, &small, now, now)
	for range 47 {
		if d := decide(&large, &st, now, 1, cell.Take); d.Limited {
			t.Fatalf("%+v", d)
		}
		now++
	}
	small.Carry(&st, &large, now, now)
	for range 10 {
		decide(&small, &st, now, 1, cell.Force)
		now++
	}
	if n := uint32(st.A); n != 50 {
		t.Errorf("%d entries, want the 50 that were there", n)
	}
	text := string(small.AppendState(nil, &st))
	if _, back, err := cell.ParseState(text); err != nil || small.EndNS(&back) != uint64(now-1+small.PeriodNS) {
		t.Errorf("%s: %v", text, err)
	}
	if d := decide(&small, &st, now, 1, cell.Take); !d.Limited || d.RetryAfterNS != uint64(small.PeriodNS)-3 {
		t.Errorf("%+v: all but two entries must leave", d)
	}
}

// A call that is forced into a full log counts for a period, and so does each call before it.
func TestAForcedCallDelaysNoOther(t *testing.T) {
	l := mustLiteral(t, "2/1s,algo=log")
	var st cell.State
	const ms = 1_000_000
	for _, c := range []struct {
		at    int64
		mode  cell.Mode
		retry uint64 // ms; 0: passes
	}{
		{0, cell.Take, 0}, {500, cell.Take, 0}, {900, cell.Force, 0},
		{950, cell.Take, 550}, {1499, cell.Take, 1}, {1500, cell.Take, 0}, {1501, cell.Take, 399}, {1900, cell.Take, 0},
	} {
		d := decide(&l, &st, aDayIn2027+c.at*ms, 1, c.mode)
		if d.Limited != (c.retry > 0) || d.Limited && d.RetryAfterNS != c.retry*ms {
			t.Errorf("after %d ms: %+v, want to retry after %d ms", c.at, d, c.retry)
		}
	}
}

// Whatever was forced, a log decides as if it kept every call, although it keeps no more than the count.
func TestAForcedLogDecidesByAllCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLiteral(t,
			rapid.SampledFrom([]string{"1/1s,algo=log", "2/1s,algo=log", "5/1s,algo=log", "9/1s,algo=log"}).Draw(t, "limit"))
		var st cell.State
		var all []call
		now := int64(aDayIn2027)
		passes := func(at, cost int64) bool { return in(all, at-l.PeriodNS, at)+cost <= l.Count }
		for range 60 {
			now += rapid.SampledFrom([]int64{0, 1, l.PeriodNS / 20, l.PeriodNS / 3}).Draw(t, "wait")
			cost := rapid.Int64Range(1, l.Count).Draw(t, "cost")
			mode := rapid.SampledFrom([]cell.Mode{cell.Take, cell.Force}).Draw(t, "mode")
			d := decide(&l, &st, now, cost, mode)
			if want := mode == cell.Take && !passes(now, cost); d.Limited != want {
				t.Fatalf("%v, cost %d of %v at %d: limited %v", l, cost, all, now, d.Limited)
			}
			if d.Limited {
				if at := now + int64(d.RetryAfterNS); !passes(at, cost) || passes(at-1, cost) {
					t.Fatalf("%v, cost %d of %v at %d: retry after %d", l, cost, all, now, d.RetryAfterNS)
				}
				continue
			}
			all = append(all, call{now, cost})
		}
	})
}

// Fit makes enough room, however calls come, and never more than the count.
func TestFitIsEnough(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		now := drawInstant(t)
		var st cell.State
		var d cell.Decision
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			before := len(st.Ring)
			cost := drawCost(t, l, d)
			if words := l.Fit(&st, now, cost); words != len(st.Ring)-before {
				t.Fatalf("%v: %d words became %d, told %d", l, before, len(st.Ring), words)
			}
			fitted := len(st.Ring)
			d = l.Decide(&st, now, cost, drawMode(t))
			switch n := int64(len(st.Ring)); {
			case int(n) > fitted:
				t.Fatalf("%v: %d words became %d", l, fitted, n)
			case n == 1 && l.Algo == cell.Window || n == 1 && l.Algo == cell.Slide && l.Buckets == 0: // of large numbers
			case l.Algo == cell.Log:
				if n > 2*l.Count || n > 256 || int64(uint32(st.A)) > l.Count {
					t.Fatalf("%v: %d words, %d entries", l, n, uint32(st.A))
				}
			case l.Algo == cell.Conc:
				if n > 6*64 {
					t.Fatalf("%v: %d words, %d leases", l, n, uint32(st.A))
				}
			case n != int64(l.Buckets):
				t.Fatalf("%v: %d words", l, n)
			}
		}
	})
}

// Fits says whether Fit would find room, and changes nothing.
func TestFits(t *testing.T) {
	for _, text := range []string{"3/1s,algo=log", "9/1s,algo=log", "5/1s,algo=slide,buckets=4", "5/1s", "5/1s,algo=window",
		"5/1s,algo=slide"} {
		l, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		var st cell.State
		for i := range int64(12) {
			fits := l.Fits(&st)
			if words := l.Fit(&st, aDayIn2027+i, 1); fits && words > 0 || !fits && words == 0 {
				t.Errorf("%s, call %d: Fits says %v, and Fit makes room of %d words", text, i, fits, words)
			}
			l.Decide(&st, aDayIn2027+i, 1, cell.Take)
		}
	}
}

// When a wrapped ring grows, it keeps the order of its calls. It does not grow for calls that no longer count.
func TestAWrappedLogGrows(t *testing.T) {
	l := mustLiteral(t, "100/10s,algo=log")
	var st cell.State
	const second = 1_000_000_000
	for i := range int64(4) {
		decide(&l, &st, aDayIn2027+i*second, i+1, cell.Take)
	}
	full := len(st.Ring)
	const now = aDayIn2027 + 10*second // the first is gone, and this takes its place
	decide(&l, &st, now, 50, cell.Take)
	if len(st.Ring) != full {
		t.Fatalf("%d words, then %d: it grew, though a call was gone", full, len(st.Ring))
	}
	decide(&l, &st, now+1, 1, cell.Take)
	if len(st.Ring) != 2*full {
		t.Fatalf("%d words, then %d", full, len(st.Ring))
	}
	for cost, wait := range map[int64]uint64{41: second, 42: second, 43: 2 * second, 45: 2 * second, 46: 3 * second, 49: 3 * second,
		50: 10 * second, 99: 10 * second, 100: 10*second + 1} {
		if d := decide(&l, &st, now, cost, cell.Take); !d.Limited || d.RetryAfterNS != wait {
			t.Errorf("cost %d: %+v, want to wait %d", cost, d, wait)
		}
	}
}

// A call that is forced on a log that can count no more is not in it, and delays nothing.
func TestWhatALogCannotCountDelaysNothing(t *testing.T) {
	l, st, err := cell.ParseState("limit=3/1m,algo=log calls=1800000000000000000:9007199254740992")
	if err != nil {
		t.Fatal(err)
	}
	if d := decide(&l, &st, aDayIn2027+l.PeriodNS/6, 1, cell.Force); d.Remaining != 0 || d.ResetAfterNS != uint64(l.PeriodNS/6*5) {
		t.Errorf("%+v", d)
	}
}
