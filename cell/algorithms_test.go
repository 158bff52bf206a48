package cell_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
)

// Each algorithm that a limit names is held to what all promise.
func TestEachAlgorithmIsTested(t *testing.T) {
	for at := range cell.Algos() {
		algo := cell.Algo(at)
		if algo != cell.Warmup && !slices.ContainsFunc(algorithms, func(a algorithm) bool { return a.name == algo.String() }) {
			t.Errorf("%v has no row in literalgen_test.go", algo)
		}
	}
}

// Over every span, no more passes than the bound that the algorithm promises, however the caller times its calls.
func TestNeverMoreThanTheBound(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		now := drawInstant(t)
		var st cell.State
		var d cell.Decision
		var passed []call
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			cost := drawCost(t, l, d)
			if d = decide(&l, &st, now, cost, cell.Take); !d.Limited && cost > 0 {
				passed = append(passed, call{now, cost})
			}
		}
		a.bound(t, l, passed)
	})
}

// in is what passed after one instant and up to another.
func in(passed []call, after, to int64) (sum int64) {
	for _, c := range passed {
		if c.at > after && c.at <= to {
			sum += c.cost
		}
	}
	return sum
}

// burst + rate × T
func boundBucket(t rapid.TB, l cell.Limit, passed []call) {
	period, count := big.NewInt(l.PeriodNS), big.NewInt(l.Count)
	for _, from := range passed {
		for _, to := range passed {
			if to.at < from.at {
				continue
			}
			sum := big.NewInt(in(passed, from.at-1, to.at) - l.Burst)
			most := new(big.Int).Mul(count, big.NewInt(to.at-from.at))
			if sum.Mul(sum, period).Cmp(most) > 0 {
				t.Fatalf("%v: more than burst and rate from %d to %d: %v", l, from.at, to.at, passed)
			}
		}
	}
}

// The count in each window, and twice that in any span.
func boundWindow(t rapid.TB, l cell.Limit, passed []call) {
	twiceInAnySpan(t, l, passed)
	var end int64
	for _, c := range passed {
		if c.at < end {
			continue
		}
		begin := c.at - 1
		end = windowEnd(l, c.at)
		if sum := in(passed, begin, end-1); sum > l.Count {
			t.Fatalf("%v: %d in the window to %d: %v", l, sum, end, passed)
		}
	}
}

func twiceInAnySpan(t rapid.TB, l cell.Limit, passed []call) {
	shortest := l.PeriodNS
	if name, _ := zoneOf(l); name != "" {
		shortest -= int64(time.Hour)
	}
	for _, c := range passed {
		if sum := in(passed, c.at-shortest, c.at); sum > 2*l.Count {
			t.Fatalf("%v: %d in the period up to %d: %v", l, sum, c.at, passed)
		}
	}
}

// Its own formula, behind each call, and twice the count in any span.
func boundSlide(t rapid.TB, l cell.Limit, passed []call) {
	twiceInAnySpan(t, l, passed)
	for i, c := range passed {
		elapsed := c.at % l.PeriodNS
		start := c.at - elapsed
		cur := big.NewInt(in(passed[:i+1], start-1, c.at) - l.Count)
		prev := big.NewInt(in(passed, start-l.PeriodNS-1, start-1))
		prev.Mul(prev, big.NewInt(l.PeriodNS-elapsed))
		if cur.Mul(cur, big.NewInt(l.PeriodNS)).Add(cur, prev).Sign() > 0 {
			t.Fatalf("%v: more than the formula allows at %d: %v", l, c.at, passed)
		}
	}
}

// The count in any n sub-windows.
func boundBuckets(t rapid.TB, l cell.Limit, passed []call) {
	m := newBucketsModel(l).(*countersModel)
	for _, c := range passed {
		m.take(c.at, c.cost)
	}
	for _, c := range passed {
		if sum := m.used(uint64(c.at)); sum > l.Count {
			t.Fatalf("%v: %d in the sub-windows up to %d: %v", l, sum, c.at, passed)
		}
	}
}

// The count, in any span.
func boundLog(t rapid.TB, l cell.Limit, passed []call) {
	for _, c := range passed {
		if sum := in(passed, c.at-l.PeriodNS, c.at); sum > l.Count {
			t.Fatalf("%v: %d in the period up to %d: %v", l, sum, c.at, passed)
		}
	}
}

// Each call leaves a state and says what will happen. The test moves the clock there, and to a nanosecond before, and both are true.
func TestEveryDecisionHolds(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		now := drawInstant(t)
		var st cell.State
		var d cell.Decision
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			cost, mode := drawCall(t, l, &st, now, d)
			l.Fit(&st, now, 1)
			before := clone(st)
			d = l.Decide(&st, now, cost, mode)
			wantNoMoreChanged(t, l, before, st, now, cost, mode, d)
			wantRetry(t, l, st, now, cost, mode, d)
			wantRemaining(t, l, st, now, d)
			wantReset(t, l, st, now, d)
			if back := drawCost(t, l, d); rapid.IntRange(0, 3).Draw(t, "gives") == 0 {
				wantGive(t, l, &st, now, back)
			}
		}
	})
}

// wantNoMoreChanged: a denied call changes nothing but the block, a peek and a call of no cost nothing, shadow nothing.
func wantNoMoreChanged(t *rapid.T, l cell.Limit, before, after cell.State, now, cost int64, mode cell.Mode, d cell.Decision) {
	blocked := before.BlockedNS > uint64(now)
	if d.Limited && mode == cell.Take && !blocked && l.BlocksDenied() {
		before.BlockedNS = uint64(now + l.BlockNS)
	}
	if (d.Limited || mode == cell.Peek || cost == 0) && !equal(before, after) {
		t.Fatalf("%v at %d, cost %d, mode %d: %+v became %+v: %+v", l, now, cost, mode, before, after, d)
	}
	if d.Limited && (mode == cell.Force || cost == 0 && !blocked) {
		t.Fatalf("%v at %d, cost %d, mode %d: limited: %+v", l, now, cost, mode, d)
	}
	bright := l
	bright.Shadow = !l.Shadow
	if other := attempt(&bright, after, now, cost, mode); other != attempt(&l, after, now, cost, mode) {
		t.Fatalf("%v at %d, cost %d: another decision in the shadow: %+v", l, now, cost, other)
	}
}

// wantRetry: the same call passes then and no sooner, if nothing else happens; what never passes is more than the capacity.
func wantRetry(t *rapid.T, l cell.Limit, st cell.State, now, cost int64, mode cell.Mode, d cell.Decision) {
	switch {
	case !d.Limited:
		if d.RetryAfterNS != cell.Never {
			t.Fatalf("%v: not limited, and to retry after %d ns", l, d.RetryAfterNS)
		}
	case cost > l.Capacity():
		if d.RetryAfterNS != cell.Never {
			t.Fatalf("%v: %d passes after %d ns", l, cost, d.RetryAfterNS)
		}
	case d.RetryAfterNS == 0 || d.RetryAfterNS > uint64(maxInstant-now):
		if d.RetryAfterNS == 0 || mode != cell.Force && d.RetryAfterNS == cell.Never {
			t.Fatalf("%v: cost %d denied for %d ns", l, cost, d.RetryAfterNS)
		}
	default:
		at := now + int64(d.RetryAfterNS)
		if then := attempt(&l, st, at, cost, cell.Take); then.Limited {
			t.Fatalf("%v: %d was told to retry after %d ns, and then: %+v", l, cost, d.RetryAfterNS, then)
		}
		if sooner := attempt(&l, st, at-1, cost, cell.Take); !sooner.Limited {
			t.Fatalf("%v: %d was told to retry after %d ns, and 1 ns sooner: %+v", l, cost, d.RetryAfterNS, sooner)
		}
	}
}

const maxInstant = 1<<63 - 1

// wantRemaining: so much passes now, and one more does not.
func wantRemaining(t *rapid.T, l cell.Limit, st cell.State, now int64, d cell.Decision) {
	if d.Remaining < 0 || d.Remaining > l.Capacity() || d.Limit != l.Capacity() {
		t.Fatalf("%v: %+v", l, d)
	}
	if all := attempt(&l, st, now, d.Remaining, cell.Take); all.Limited && d.Remaining > 0 {
		t.Fatalf("%v: %d remain, and do not pass: %+v", l, d.Remaining, all)
	}
	if more := attempt(&l, st, now, min(d.Remaining+1, cell.MaxCost), cell.Take); d.Remaining < cell.MaxCost && !more.Limited {
		t.Fatalf("%v: %d remain, and one more passes: %+v", l, d.Remaining, more)
	}
}

// wantReset: the key is as good as new then and no sooner, and that is when its state ends.
func wantReset(t *rapid.T, l cell.Limit, st cell.State, now int64, d cell.Decision) {
	if end := max(l.EndNS(&st), uint64(now)); end != uint64(now)+d.ResetAfterNS {
		t.Fatalf("%v at %d: full in %d ns, and the state ends at %d", l, now, d.ResetAfterNS, end)
	}
	if d.ResetAfterNS > uint64(maxInstant-now) {
		return
	}
	at := now + int64(d.ResetAfterNS)
	for _, cost := range []int64{0, 1, l.Capacity()} {
		if then, fresh := attempt(&l, st, at, cost, cell.Take), attempt(&l, cell.State{}, at, cost, cell.Take); then != fresh {
			t.Fatalf("%v: full after %d ns, and then: %+v, a new key: %+v", l, d.ResetAfterNS, then, fresh)
		}
	}
	if d.ResetAfterNS > 0 {
		if sooner := attempt(&l, st, at-1, 0, cell.Peek); sooner.ResetAfterNS != 1 || sooner.Remaining == l.Capacity() {
			t.Fatalf("%v: full after %d ns, and 1 ns sooner: %+v", l, d.ResetAfterNS, sooner)
		}
	}
}

// wantGive: no more is given back than is asked for and was taken, and what is given back may be taken again.
func wantGive(t *rapid.T, l cell.Limit, st *cell.State, now, n int64) {
	st.BlockedNS = 0
	before := l.Decide(st, now, 0, cell.Peek)
	given := l.Give(st, now, n)
	after := l.Decide(st, now, 0, cell.Peek)
	switch {
	case given < 0 || given > n:
		t.Fatalf("%v: %d given back of %d", l, given, n)
	case n > 0 && before.ResetAfterNS > 0 && given == 0 || before.ResetAfterNS == 0 && given > 0:
		t.Fatalf("%v: %d given back of %d to %+v", l, given, n, before)
	case after.Remaining < before.Remaining || after.ResetAfterNS > before.ResetAfterNS:
		t.Fatalf("%v: %+v became %+v", l, before, after)
	case after.Remaining-before.Remaining > given:
		t.Fatalf("%v: %d given back, and %+v became %+v", l, given, before, after)
	case given < n && after.ResetAfterNS > 0:
		t.Fatalf("%v: %d given back of %d, and %+v remains", l, given, n, after)
	}
}

// To give to a new key, or to a key that is full again, creates nothing.
func TestGiveCreatesNothing(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, _ algorithm, l cell.Limit) {
		st, now := drawHistory(t, l, cell.Take, cell.Force)
		n := rapid.Int64Range(1, cell.MaxCost).Draw(t, "n")
		var empty cell.State
		if given := l.Give(&empty, now, n); given != 0 || !equal(empty, cell.State{}) {
			t.Fatalf("%v: %d given back to a new key, %+v", l, given, empty)
		}
		if end := l.EndNS(&st); end < endOfTests && l.Give(&st, max(now, int64(end)), n) != 0 {
			t.Fatalf("%v: something given back to a full key", l)
		}
	})
}

// A denied key with block= stays denied that long: calls meanwhile do not extend it, and Force passes.
func TestABlockLastsAsLongAsItSays(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		l = mustLiteral(t, a.draw(t).String()+",block=90s")
		now := drawInstant(t)
		var st cell.State
		decide(&l, &st, now, l.Capacity(), cell.Take)
		if d := decide(&l, &st, now, 1, cell.Take); !d.Limited || d.RetryAfterNS < 90e9 {
			t.Fatalf("%v: %+v", l, d)
		}
		for range rapid.IntRange(0, 5).Draw(t, "calls") {
			at := now + rapid.Int64Range(0, 90e9-1).Draw(t, "meanwhile")
			if d := decide(&l, &st, at, rapid.Int64Range(1, l.Capacity()).Draw(t, "cost"), cell.Take); !d.Limited {
				t.Fatalf("%v: passes though blocked: %+v", l, d)
			}
			if d := attempt(&l, st, at, 1, cell.Force); d.Limited || d.Remaining != 0 || d.ResetAfterNS < uint64(now+90e9-at) {
				t.Fatalf("%v: forced: %+v", l, d)
			}
		}
		plain := mustLiteral(t, a.draw(t).String())
		if end := uint64(now + 90e9); st.BlockedNS != end || plain.EndNS(&cell.State{BlockedNS: end}) != end {
			t.Fatalf("%v: blocked until %d, want %d", l, st.BlockedNS, end)
		}
	})
}

// With block-at=full the call that takes the last passes, and the block begins with it. A denied call that does not take the last begins
// none.
func TestABlockThatBeginsWithTheLast(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		l = mustLiteral(t, a.draw(t).String()+",block=90s,block-at=full")
		now := drawInstant(t)
		var st cell.State
		if all := l.Capacity(); all > 1 {
			if d := decide(&l, &st, now, all-1, cell.Take); d.Limited || st.BlockedNS != 0 && d.Remaining > 0 {
				t.Fatalf("%v: all but one: %+v, blocked until %d", l, d, st.BlockedNS)
			}
			if d := attempt(&l, st, now, all, cell.Take); !d.Limited || st.BlockedNS == 0 && d.Remaining == 0 {
				t.Fatalf("%v: too many: %+v", l, d)
			}
		}
		if st.BlockedNS != 0 { // of a warmup nothing is left
			return
		}
		mode := rapid.SampledFrom([]cell.Mode{cell.Take, cell.Force}).Draw(t, "mode")
		d := decide(&l, &st, now, 1, mode)
		if end := uint64(now + 90e9); d.Limited || d.Remaining != 0 || st.BlockedNS != end || d.ResetAfterNS < 90e9 {
			t.Fatalf("%v: the last: %+v, blocked until %d, want %d", l, d, st.BlockedNS, end)
		}
		for _, cost := range []int64{0, 1} {
			at := now + rapid.Int64Range(0, 90e9-1).Draw(t, "meanwhile")
			end := st.BlockedNS
			if d := decide(&l, &st, at, cost, cell.Take); !d.Limited || d.RetryAfterNS < uint64(now+90e9-at) || st.BlockedNS != end {
				t.Fatalf("%v: cost %d while it is blocked: %+v", l, cost, d)
			}
		}
	})
}
