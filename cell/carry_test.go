package cell_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
)

// Another count or burst keeps what is used, as a number: counts stay, and a debt is as many intervals.
func TestAnotherCountKeepsTheNumber(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, old cell.Limit) {
		before, now := drawHistory(t, old, cell.Take, cell.Take, cell.Force)
		l := drawParams(t, old)
		after := clone(before)
		l.Carry(&after, &old, now, now)
		if old.Algo != cell.GCRA {
			if !equal(before, after) {
				t.Fatalf("%v to %v: %+v became %+v", old, l, before, after)
			}
			return
		}
		at := uint64(now)
		debt := new(big.Int).SetUint64(max(before.A, at) - at)
		debt.Mul(debt, big.NewInt(intervalNS(l))).Add(debt, big.NewInt(intervalNS(old)-1)).Div(debt, big.NewInt(intervalNS(old)))
		if most := big.NewInt(math.MaxInt64); debt.Cmp(most) > 0 {
			debt = most
		}
		if after.BlockedNS != before.BlockedNS || max(after.A, at)-at != debt.Uint64() {
			t.Fatalf("%v to %v at %d: %+v became %+v, want a debt of %d", old, l, now, before, after, debt)
		}
	})
}

// Whatever a bucket's limit changes to between calls, in any span no more passes than the largest burst and the largest rate allow, of the
// limits that calls in it went by.
func TestChangesOfABucketGainNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := []cell.Limit{mustLiteral(t, "10/1s"), mustLiteral(t, "100/1s,burst=3"), mustLiteral(t, "7/1s,burst=50"),
			mustLiteral(t, "1000/1s"), mustLiteral(t, "1/1s")}
		type call struct {
			at, passed int64
			by         cell.Limit
		}
		var calls []call
		var st cell.State
		was, now := limits[0], int64(aDayIn2027)
		for range rapid.IntRange(2, 60).Draw(t, "calls") {
			now += rapid.SampledFrom([]int64{0, 0, 1e6, 3e7, 2e8, 1e9, 9e9}).Draw(t, "ns")
			by := rapid.SampledFrom(limits).Draw(t, "limit")
			cost := rapid.Int64Range(1, by.Capacity()).Draw(t, "cost")
			by.Carry(&st, &was, now, now)
			c := call{at: now, by: by}
			if !decide(&by, &st, now, cost, cell.Take).Limited {
				c.passed = cost
			}
			calls, was = append(calls, c), by
		}
		for i := range calls {
			sum, burst, interval := int64(0), int64(0), int64(math.MaxInt64)
			for _, c := range calls[i:] {
				sum, burst, interval = sum+c.passed, max(burst, c.by.Burst), min(interval, intervalNS(c.by))
				if most := burst + (c.at-calls[i].at)/interval; sum > most {
					t.Fatalf("%d of %d at most pass in %v: %v", sum, most, time.Duration(c.at-calls[i].at), calls[i:])
				}
			}
		}
	})
}

// There and back, a change gains nothing.
func TestThereAndBack(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		st, now := drawHistory(t, l, cell.Take, cell.Take, cell.Force)
		other, back := drawParams(t, l), clone(st)
		other.Carry(&back, &l, now, now)
		if other.Algo == cell.GCRA && attempt(&other, back, now, 0, cell.Peek).ResetAfterNS == math.MaxInt64 {
			return // what takes more than 292 years to flow back is cut off
		}
		l.Carry(&back, &other, now, now)
		for _, cost := range []int64{1, l.Capacity()} {
			is, was := attempt(&l, back, now, cost, cell.Take), attempt(&l, st, now, cost, cell.Take)
			if was.Limited && !is.Limited || is.Remaining > was.Remaining {
				t.Fatalf("%v to %v and back: %+v, and it was %+v", l, other, is, was)
			}
		}
	})
}

// Between limits that count in other ways, or over other periods, it is the number that is taken anew, and the block stays.
func TestAnotherAlgorithmKeepsTheNumber(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, old cell.Limit) {
		st, now := drawHistory(t, old, cell.Take, cell.Take, cell.Force)
		l := rapid.SampledFrom(algorithms).Draw(t, "to").draw(t)
		if l.Shape == old.Shape || l.Algo == cell.Conc && old.Algo == cell.Conc {
			return // leases stay
		}
		blocked := st.BlockedNS
		st.BlockedNS = 0
		before := attempt(&old, st, now, 0, cell.Peek)
		st.BlockedNS = blocked
		l.Carry(&st, &old, now, now)
		if st.BlockedNS != blocked {
			t.Fatalf("%v to %v: blocked until %d, and now %d", old, l, blocked, st.BlockedNS)
		}
		st.BlockedNS = 0
		after := attempt(&l, st, now, 0, cell.Peek)
		used, is := before.Limit-before.Remaining, after.Limit-after.Remaining
		// Where nothing remained, more than all may have been used.
		if want := min(used, after.Limit); is < want || is > want && before.Remaining > 0 {
			t.Fatalf("%v to %v: %+v became %+v, want %d used", old, l, before, after, want)
		}
	})
}

// More than all that is used stays so, whichever way the next limit counts.
func TestMoreThanAllIsCarried(t *testing.T) {
	kinds := []string{"", ",algo=window", ",algo=slide", ",algo=slide,buckets=4", ",algo=log", ",algo=conc"}
	for _, from := range kinds {
		for _, to := range kinds {
			old, l := mustLiteral(t, "10/1h"+from), mustLiteral(t, "100/2h"+to)
			if old.Algo == cell.Conc && l.Algo == cell.Conc {
				continue
			}
			var st cell.State
			decide(&old, &st, aDayIn2027, 70, cell.Force)
			l.Carry(&st, &old, aDayIn2027, aDayIn2027)
			if d := decide(&l, &st, aDayIn2027, 0, cell.Peek); d.Remaining != 30 {
				t.Errorf("%s to %s: 70 are used, and then %d remain of 100", from, to, d.Remaining)
			}
		}
	}
}

// To the same limit, whatever its block, nothing changes.
func TestCarryToItselfChangesNothing(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		st, now := drawHistory(t, l, cell.Take, cell.Force)
		before := clone(st)
		same := drawOptions(t, plain(t, l))
		same.Carry(&st, &l, now, now)
		if !equal(before, st) {
			t.Fatalf("%v: %+v became %+v", l, before, st)
		}
	})
}

// After any forced calls, the key is used up, its reset never comes sooner, and it can be saved, also under another count.
func TestDebtsEndAndNeverWrap(t *testing.T) {
	const begun = " calls=1800000000000000000:9007199254740000"
	for _, c := range []struct{ limit, other, state string }{
		{"1/366d", "2147483647/366d", " tat=0"},
		{"1/366d,burst=291", "2147483647/366d", " tat=0"},
		{"1/366d,burst=291", "1/366d", " tat=18446744073709551615"},
		{"1/1us,burst=2147483647", "10/1us,burst=1", " tat=0"},
		{"1/366d,algo=window", "2147483647/366d,algo=window", " until=1800000001000000000 used=9007199254740992"},
		{"10/1us,algo=window", "1/1us,algo=window", " until=0 used=0"},
		{"1/year", "2147483647/year", " until=0 used=0"},
		{"1/366d,algo=slide", "2147483647/366d,algo=slide", " start=0 used=0 before=0"},
		{"10/1us,algo=slide", "1/1us,algo=slide", " start=0 used=0 before=0"},
		{"1/366d,algo=slide,buckets=2", "2147483647/366d,algo=slide,buckets=2", " newest=0 used=0,0"},
		{"2/2us,algo=slide,buckets=2", "1/2us,algo=slide,buckets=2", " newest=0 used=0,0"},
		{"1/366d,algo=log", "2147483647/366d,algo=log", begun},
		{"10/1us,algo=log", "1/1us,algo=log", begun},
		{"1/366d,algo=conc", "2147483647/366d,algo=conc", " leases=0:1830000000000000000:9007199254740000"},
	} {
		l, st, err := cell.ParseState("limit=" + c.limit + c.state)
		if err != nil {
			t.Fatal(c, err)
		}
		other := mustLiteral(t, c.other)
		const now = aDayIn2027
		for range 5 {
			var reset uint64
			for range 200 {
				d := decide(&l, &st, now, cell.MaxCost, cell.Force)
				if d.Limited || d.Remaining != 0 || d.ResetAfterNS < reset || d.ResetAfterNS == 0 {
					t.Fatalf("%s: %+v, and it was to be full in %d", c.limit, d, reset)
				}
				reset = d.ResetAfterNS
			}
			if d := decide(&l, &st, now, 1, cell.Take); !d.Limited {
				t.Fatalf("%s passes: %+v", c.limit, d)
			}
			text := string(l.AppendState(nil, &st))
			if _, _, err := cell.ParseState(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			other.Carry(&st, &l, now, now)
			l, other = other, l
		}
	}
}

// 292 years is as far as a debt goes, and not what is left of it in 64 bits.
func TestADebtIsNotCutOff(t *testing.T) {
	l := mustLiteral(t, "1/366d,burst=291")
	for cost := int64(292); cost < cell.MaxCost; cost += 1 + cost/64 {
		var st cell.State
		if d := decide(&l, &st, aDayIn2027, cost, cell.Force); d.Remaining != 0 || d.ResetAfterNS != math.MaxInt64 {
			t.Fatalf("%d forced: %+v", cost, d)
		}
	}
}

// The sums of a log go on as long as it is used, and over the end of 64 bits.
func TestTheSumsOfALogMayWrap(t *testing.T) {
	l := mustLiteral(t, "10/1us,algo=log")
	for before := range uint64(40) {
		var st cell.State
		now := int64(aDayIn2027)
		for range 6 {
			decide(&l, &st, now, 1, cell.Take)
			now += 10
		}
		st.B -= before
		for i := 1; i < len(st.Ring); i += 2 {
			st.Ring[i] -= before
		}
		for range 4 {
			decide(&l, &st, now, 4, cell.Force)
			now += 10
		}
		for _, c := range []struct{ cost, retry int64 }{{1, 970}, {2, 970}, {3, 980}, {6, 980}, {7, 990}, {10, 990}} { // of 22 are used
			if d := decide(&l, &st, now, c.cost, cell.Take); !d.Limited || d.RetryAfterNS != uint64(c.retry) {
				t.Fatalf("%d before the end, cost %d: %+v, want to retry after %d", before, c.cost, d, c.retry)
			}
		}
		if given := l.Give(&st, now, 17); given != 17 {
			t.Fatalf("%d before the end, %d given back", before, given)
		}
		if d := decide(&l, &st, now, 0, cell.Peek); d.Remaining != 5 {
			t.Fatalf("%d before the end: %+v", before, d)
		}
	}
}
