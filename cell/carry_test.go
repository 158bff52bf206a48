package cell_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// keepsCalls reports that a state carries no share: a log keeps its calls, and leases stay.
func keepsCalls(l cell.Limit) bool { return l.Algo == cell.Log || l.Algo == cell.Conc }

// usedShare is how much of the capacity is used at an instant, from the words of a state.
func usedShare(l cell.Limit, st cell.State, now int64) *big.Rat {
	big64 := func(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
	at := uint64(now)
	switch {
	case l.Algo == cell.GCRA:
		tolerance := new(big.Int).Mul(big.NewInt(intervalNS(l)), big.NewInt(l.Burst))
		return new(big.Rat).SetFrac(big64(max(st.A, at)-at), tolerance)
	case l.Algo == cell.Window:
		used, _ := pair(st)
		return new(big.Rat).SetFrac(big64(used*min(1, max(st.A, at)-at)), big.NewInt(l.Count))
	case l.Buckets > 0:
		_, sum := ring(l, st, now)
		return new(big.Rat).SetFrac(big64(sum), big.NewInt(l.Count))
	}
	period := uint64(l.PeriodNS)
	cur, prev := pair(st)
	used := new(big.Int)
	switch elapsed := at - st.A; {
	case elapsed < period:
		used.Add(used.Mul(big64(cur), big64(period)), new(big.Int).Mul(big64(prev), big64(period-elapsed)))
	case elapsed < 2*period:
		used.Mul(big64(cur), big64(2*period-elapsed))
	}
	return new(big.Rat).SetFrac(used, new(big.Int).Mul(big64(period), big.NewInt(l.Count)))
}

// pair is what a window or a slide has used in its last window and in the one before it.
func pair(st cell.State) (last, before uint64) {
	if st.B>>63 == 0 {
		return st.B & math.MaxUint32, st.B >> 32
	}
	if len(st.Ring) > 0 {
		before = st.Ring[0]
	}
	return st.B << 1 >> 1, before
}

// ring is what the sub-windows of a state have that still count, by number.
func ring(l cell.Limit, st cell.State, now int64) (counters map[int64]uint64, sum uint64) {
	counters = map[int64]uint64{}
	n := uint64(l.Buckets)
	newest := newBucketsModel(l).(*countersModel).number(uint64(now))
	for i := range uint64(len(st.Ring)) {
		number := int64(st.A - n + 1 + i)
		if number > newest-int64(n) {
			counters[number] = st.Ring[(st.A+1+i)%n]
			sum += counters[number]
		}
	}
	return counters, sum
}

// Another count or burst refills nothing, now or later, and nobody waits longer for it than for a key that was used up now.
func TestAnotherCountGainsNothing(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, old cell.Limit) {
		before, now := drawHistory(t, old, cell.Take, cell.Take, cell.Force)
		forced := false
		if !keepsCalls(old) {
			forced = usedShare(old, before, now).Cmp(big.NewRat(1, 1)) > 0
		}
		l := drawParams(t, old)
		after := clone(before)
		l.Carry(&after, &old, now, now)
		if keepsCalls(old) {
			if !equal(before, after) {
				t.Fatalf("%v to %v: %+v became %+v", old, l, before, after)
			}
		} else {
			wantShareKept(t, old, l, before, after, now)
			if old.Algo != cell.GCRA { // there the rate of flowing back is another
				wantShareKept(t, old, l, before, after, now+rapid.Int64Range(0, old.PeriodNS).Draw(t, "later"))
			}
		}
		if forced {
			return
		}
		before.BlockedNS, after.BlockedNS = 0, 0
		var empty cell.State
		decide(&l, &empty, now, l.Capacity(), cell.Take)
		for _, cost := range []int64{1, l.Capacity(), drawCost(t, l, cell.Decision{})} {
			got, most := attempt(&l, after, now, cost, cell.Take), attempt(&l, empty, now, cost, cell.Take)
			if got.Limited && got.RetryAfterNS > most.RetryAfterNS {
				t.Fatalf("%v to %v: cost %d waits %d, and %d for a key that is used up", old, l, cost, got.RetryAfterNS, most.RetryAfterNS)
			}
		}
	})
}

func wantShareKept(t *rapid.T, old, l cell.Limit, before, after cell.State, now int64) {
	was, is := usedShare(old, before, now), usedShare(l, after, now)
	if debt := big.NewRat(2, 1); was.Cmp(debt) > 0 {
		was = debt // they end somewhere
	}
	saturated := false
	switch {
	case l.Algo == cell.GCRA:
		saturated = after.A >= uint64(now)+math.MaxInt64
	case l.Buckets > 0:
		saturated = after.B == mostUsed
	case l.Algo == cell.Slide, l.Algo == cell.Window:
		cur, prev := pair(after)
		saturated = max(cur, prev) == mostUsed
	}
	if saturated {
		return
	}
	if is.Cmp(was) < 0 {
		t.Fatalf("%v to %v at %d: %v used, and now %v: %+v became %+v", old, l, now, was, is, before, after)
	}
	if was.Cmp(big.NewRat(1, 1)) >= 0 {
		if d := attempt(&l, after, now, 1, cell.Take); !d.Limited || d.Remaining != 0 {
			t.Fatalf("%v to %v: passes, though it was used up: %+v", old, l, d)
		}
	}
}

// Between limits that count in other ways, or over other periods, it is the used share that is taken, and the block stays.
func TestAnotherAlgorithmKeepsTheShare(t *testing.T) {
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
		used, rest := new(big.Int).QuoRem(
			new(big.Int).Mul(big.NewInt(before.Limit-before.Remaining), big.NewInt(after.Limit)), big.NewInt(before.Limit), new(big.Int))
		if rest.Sign() > 0 {
			used.Add(used, big.NewInt(1))
		}
		if after.Limit-after.Remaining != used.Int64() {
			t.Fatalf("%v to %v: %+v became %+v, want %v used", old, l, before, after, used)
		}
	})
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

// After any forced calls, under any count, the key is used up, its reset never comes sooner, and it can be saved.
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
			if d := decide(&other, &st, now, 1, cell.Take); !d.Limited && !keepsCalls(l) {
				t.Fatalf("%s passes where %s was used up: %+v", c.other, c.limit, d)
			}
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

// The counters of a slide are half a word. A larger value stays the highest, and is not cut off.
func TestACarriedSlideIsNotCutOff(t *testing.T) {
	l := mustLiteral(t, "1073741824/366d,algo=slide")
	for _, state := range []string{"used=4 before=0", "used=0 before=4", "used=4 before=4", "used=4294967292 before=0"} {
		old, st, err := cell.ParseState("limit=1/366d,algo=slide start=1800000000000000000 " + state)
		if err != nil {
			t.Fatal(err)
		}
		l.Carry(&st, &old, aDayIn2027, aDayIn2027)
		if d := decide(&l, &st, aDayIn2027, 1, cell.Take); !d.Limited {
			t.Errorf("%s became %s: %+v", state, l.AppendState(nil, &st), d)
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
