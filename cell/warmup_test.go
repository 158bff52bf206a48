package cell_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
)

const maxWarmupNS = 24 * 86_400 * 1_000_000_000

// guava is SmoothRateLimiter.SmoothWarmingUp as Guava publishes it, in float64, with ns for its µs.
type guava struct {
	interval, warmup, coldInterval float64
	threshold, max, slope          float64
	stored, nextFree               float64
}

func newGuava(l cell.Limit, now float64) *guava {
	g := &guava{interval: float64(intervalNS(l)), warmup: float64(l.Burst) * 1e6, nextFree: now}
	g.coldInterval = g.interval * float64(l.Cold) / 100
	g.threshold = 0.5 * g.warmup / g.interval
	g.max = g.threshold + 2.0*g.warmup/(g.interval+g.coldInterval)
	g.slope = (g.coldInterval - g.interval) / (g.max - g.threshold)
	g.stored = g.max // it is cold
	return g
}

func (g *guava) reserve(n, now float64) (wait float64) {
	if now > g.nextFree {
		g.stored = min(g.max, g.stored+(now-g.nextFree)/(g.warmup/g.max))
		g.nextFree = now
	}
	wait = g.nextFree - now
	spent := min(n, g.stored)
	g.nextFree += g.storedToWait(spent) + (n-spent)*g.interval
	g.stored -= spent
	return wait
}

func (g *guava) storedToWait(n float64) (wait float64) {
	if above := g.stored - g.threshold; above > 0 {
		taken := min(above, n)
		wait = taken * (g.toTime(above) + g.toTime(above-taken)) / 2
		n -= taken
	}
	return wait + g.interval*n
}

func (g *guava) toTime(permits float64) float64 { return g.interval + permits*g.slope }

func drawWarmup(t *rapid.T) cell.Limit {
	text := drawRate(t, false) + fmt.Sprintf(",warmup=%dms", rapid.OneOf(
		rapid.SampledFrom([]int64{1, 1000, 5000, 60_000, 24 * 86_400_000}),
		rapid.Int64Range(1, 24*86_400_000),
	).Draw(t, "warmup in ms"))
	if cold := rapid.OneOf(rapid.SampledFrom([]int{101, 200, 300, 10000}), rapid.IntRange(101, 10000)).Draw(t, "cold"); cold != 300 {
		text += fmt.Sprintf(",cold=%d.%02d", cold/100, cold%100)
	}
	return mustLiteral(t, text)
}

// Moments differ by what whole ns lose: for each permit less than the steepness of Guava's curve, in ns. A call multiplies that: it
// begins so much later, and warmer. On a steep curve, a limit that is 100 times slower when cold, nothing is left to compare soon.
func TestWarmupIsGuavas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawWarmup(t)
		begin := rapid.Int64Range(0, endOfTests/2).Draw(t, "begin")
		g := newGuava(l, 0)
		cold := float64(l.Cold) / 100
		steep := (cold - 1) * (5 + cold) * (5 + cold) / (16 * (1 + cold))
		perPermit := 4 + 4*steep
		var st cell.State
		var now int64
		var off float64
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			n := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 20), rapid.Int64Range(1, 2+int64(min(g.max, 1e6)))).Draw(t, "n")
			if g.nextFree+float64(n)*g.coldInterval > 1e18 {
				break
			}
			tolerance := 1000 + off + 1e-9*(float64(now)+g.nextFree)
			if tolerance > max(1e6, g.interval/10) {
				break
			}
			want := g.reserve(float64(n), float64(now))
			got := float64(l.Book(&st, begin+now, n))
			if math.Abs(got-want) > tolerance {
				t.Fatalf("%v: %d at %d waits %.0f, and Guava's %.0f", l, n, now, got, want)
			}
			warmer := min(1, float64(n)*2*(1+cold)/(5+cold)*g.interval/g.warmup)
			off = off*(1+2*steep*warmer) + float64(n)*perPermit
			paced := max(0, g.nextFree-float64(now)) // as a caller that waits
			pause := rapid.SampledFrom([]float64{0, 0, 0.5 * paced, paced, paced, paced, paced * 1.1, paced + g.warmup/3,
				paced + 2*g.warmup}).Draw(t, "pause")
			now += int64(pause)
			if now > 1e18 {
				break
			}
		}
	})
}

// At 10 a second, 25 calls in 5 s lead from 300 to 100 ms between two. Half of the 50 that are stored when it is cold are left then.
func TestWarmup(t *testing.T) {
	const ms = uint64(time.Millisecond)
	l, st := mustLiteral(t, "10/1s,warmup=5s"), cell.State{}
	now := int64(aDayIn2027)
	decide := func(after uint64, cost int64, mode cell.Mode, want cell.Decision) {
		t.Helper()
		now += int64(after)
		want.Limit = 10
		if !want.Limited {
			want.RetryAfterNS = cell.Never
		}
		if d := l.Decide(&st, now, cost, mode); d != want {
			t.Errorf("%d: %+v, want %+v", now-aDayIn2027, d, want)
		}
	}
	decide(0, 1, cell.Peek, cell.Decision{Remaining: 1})
	decide(0, 1, cell.Take, cell.Decision{ResetAfterNS: 296*ms + 100*ms})
	decide(0, 1, cell.Take, cell.Decision{Limited: true, RetryAfterNS: 296 * ms, ResetAfterNS: 396 * ms})
	decide(296*ms-1, 1, cell.Take, cell.Decision{Limited: true, RetryAfterNS: 1, ResetAfterNS: 100*ms + 1})
	decide(1, 0, cell.Take, cell.Decision{Remaining: 1, ResetAfterNS: 100 * ms})
	decide(0, 1, cell.Take, cell.Decision{ResetAfterNS: 288*ms + 200*ms})
	decide(0, 1, cell.Force, cell.Decision{ResetAfterNS: (288+280)*ms + 300*ms})
	decide(568*ms, 22, cell.Take, cell.Decision{ResetAfterNS: 4136*ms + 2500*ms})
	if st.B != uint64(2500*time.Millisecond) || st.A != uint64(aDayIn2027+5*time.Second) {
		t.Errorf("half of the permits are taken in 5 s: %+v", st)
	}
	decide(4136*ms, 1000, cell.Take, cell.Decision{ResetAfterNS: 100_000*ms + 5000*ms}) // hot
	decide(100_000*ms, 1, cell.Take, cell.Decision{ResetAfterNS: 100*ms + 5000*ms})
	decide(5100*ms-1, 0, cell.Take, cell.Decision{Remaining: 1, ResetAfterNS: 1})
	decide(1, 1, cell.Take, cell.Decision{ResetAfterNS: 396 * ms})
}

// A decision says what will happen, a denied call and a peek change nothing, and Book takes as Take does.
func TestEveryDecisionOnAWarmupHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawOptions(t, drawWarmup(t))
		now := drawInstant(t)
		var st cell.State
		var d cell.Decision
		var passed []call
		forced := false
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			cost, mode := drawCall(t, l, &st, now, d)
			before := st
			wait := l.Forecast(&st, now, cost)
			d = l.Decide(&st, now, cost, mode)
			wantNoMoreChanged(t, l, before, st, now, cost, mode, d)
			if cost > 0 && (wait > 0) != attempt(&l, before, now, cost, cell.Peek).Limited {
				t.Fatalf("%v at %d, cost %d: a wait of %d: %+v", l, now, cost, wait, before)
			}
			if booked := before; wait == 0 && cost > 0 {
				l.Book(&booked, now, cost)
				if taken := before; l.Decide(&taken, now, cost, cell.Take).Limited || !l.BlockAtFull && !equal(booked, taken) {
					t.Fatalf("%v at %d, cost %d: booked %+v, taken %+v", l, now, cost, booked, taken)
				}
			}
			forced = forced || mode == cell.Force
			if mode == cell.Take && !d.Limited && cost > 0 {
				passed = append(passed, call{now, cost})
			}
			if d.Limited && d.RetryAfterNS < uint64(maxInstant-now) {
				wantRetry(t, l, st, now, min(cost, l.Capacity()), mode, attempt(&l, st, now, min(cost, l.Capacity()), mode))
			}
			wantSane(t, l, st, now, cost, mode)
			if d.ResetAfterNS < uint64(maxInstant-now) {
				at := now + int64(d.ResetAfterNS)
				for _, n := range []int64{0, 1, l.Capacity()} {
					if then, fresh := attempt(&l, st, at, n, cell.Take), attempt(&l, cell.State{}, at, n, cell.Take); then != fresh {
						t.Fatalf("%v: cold after %d ns, and then: %+v, a new key: %+v", l, d.ResetAfterNS, then, fresh)
					}
				}
				if sooner := attempt(&l, st, at-1, 0, cell.Peek); d.ResetAfterNS > 0 && sooner.ResetAfterNS != 1 {
					t.Fatalf("%v: cold after %d ns, and 1 ns sooner: %+v", l, d.ResetAfterNS, sooner)
				}
			}
		}
		if !forced {
			boundWarmup(t, l, passed)
		}
	})
}

// Each call is paid for before the next passes.
func boundWarmup(t rapid.TB, l cell.Limit, passed []call) {
	for i, from := range passed {
		var owed float64
		for _, to := range passed[i:] {
			if span := float64(to.at - from.at); owed > span*(1+1e-9) {
				t.Fatalf("%v: more than the rate from %d to %d: %v", l, from.at, to.at, passed)
			}
			owed += float64(to.cost) * float64(intervalNS(l))
		}
	}
}

// drawWarm draws a state that a warmup leaves behind, and when it did.
func drawWarm(t *rapid.T, l cell.Limit) (st cell.State, now int64) {
	return drawHistory(t, l, cell.Take, cell.Take, cell.Force)
}

// A booking that is given back leaves no trace, except where nothing is stored: there the limit stays as warm as after the call.
func TestAWarmupGivesBackWhatWasBooked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawWarmup(t)
		st, now := drawWarm(t, l)
		cost := max(1, drawCost(t, l, cell.Decision{}))
		after := st
		if l.Book(&after, now, cost) == cell.Never || after.A-uint64(now) >= math.MaxInt64-maxWarmupNS {
			return
		}
		full := after.B == uint64(l.Burst)*1e6
		if given := l.Give(&after, now, cost); given != cost {
			t.Fatalf("%v: %d of %d given back", l, given, cost)
		}
		if full {
			if after.A < max(st.A, uint64(now)) {
				t.Fatalf("%v: %+v became %+v", l, st, after)
			}
			return
		}
		for _, later := range []int64{0, l.PeriodNS} {
			for _, cost := range []int64{0, 1} {
				if was, is := attempt(&l, st, now+later, cost, cell.Take), attempt(&l, after, now+later, cost, cell.Take); was != is {
					t.Fatalf("%v: %d taken and given back at %d:\n got %+v\nwant %+v", l, cost, now, is, was)
				}
			}
		}
	})
}

func TestGiveOnAWarmup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawWarmup(t)
		st, now := drawWarm(t, l)
		before, n := st, rapid.Int64Range(1, cell.MaxCost).Draw(t, "n")
		given := l.Give(&st, now, n)
		switch {
		case given < 0 || given > n || (given == 0) != (before.A <= uint64(now)):
			t.Fatalf("%v: %d of %d given back to %+v at %d", l, given, n, before, now)
		case given == 0 && !equal(before, st) || st.A > before.A || st.B > before.B || given < n && st.A > uint64(now):
			t.Fatalf("%v: %d of %d given back to %+v at %d left %+v", l, given, n, before, now, st)
		case given > 0 && st.A < uint64(now):
			t.Fatalf("%v: %d given back to %+v at %d left %+v, which passes sooner than now", l, given, before, now, st)
		}
	})
}

// Another count, warmup, cold or period keeps the share of what is stored, rounded down, and the wait in intervals, rounded up.
func TestAWarmupIsCarried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, l := drawWarmup(t), drawWarmup(t)
		st, now := drawWarm(t, old)
		was := attempt(&old, st, now, 1, cell.Peek)
		before := st
		if l.Carry(&st, &old, now, now); l.Shape == old.Shape && l.Params == old.Params && !equal(before, st) {
			t.Fatalf("%v to itself: %+v became %+v", l, before, st)
		}
		is := attempt(&l, st, now, 1, cell.Peek)
		if was.Limited != is.Limited {
			t.Fatalf("%v to %v: %+v became %+v", old, l, was, is)
		}
		warmth := float64(before.B)
		if uint64(now) > before.A {
			warmth = max(0, warmth-float64(uint64(now)-before.A))
		}
		if got, want := float64(st.B)/float64(l.Burst), warmth/float64(old.Burst); got > want*(1+1e-9)+1e-9 || got < want*(1-1e-9)-2 {
			t.Fatalf("%v to %v: %v warm, and then %v", old, l, want, got)
		}
		if was.Limited && is.RetryAfterNS < math.MaxInt64-maxWarmupNS { // the longest wait
			want := float64(was.RetryAfterNS) / float64(intervalNS(old)) * float64(intervalNS(l))
			if got := float64(is.RetryAfterNS); math.Abs(got-want) > 1+want*1e-9 {
				t.Fatalf("%v to %v: waits %v, want %v", old, l, got, want)
			}
		}
		wantSane(t, l, st, now, 1, cell.Take)
	})
}

// Other algorithms know how many calls of a limit are used: of a warmup one or none.
func TestOtherAlgorithmsCarryAWarmup(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		warm := drawWarmup(t)
		if l.Algo == cell.Warmup {
			return
		}
		st, now := drawWarm(t, warm)
		was := attempt(&warm, st, now, 1, cell.Peek)
		l.Carry(&st, &warm, now, now)
		st.BlockedNS = 0
		is := attempt(&l, st, now, 0, cell.Peek)
		if used := is.Limit - is.Remaining; used != map[bool]int64{true: 1, false: 0}[was.Limited] {
			t.Fatalf("%v to %v: %+v became %+v", warm, l, was, is)
		}
		st, now = drawHistory(t, l, cell.Take)
		st.BlockedNS = 0
		used := l.Capacity() - attempt(&l, st, now, 0, cell.Peek).Remaining
		warm.Carry(&st, &l, now, now)
		if is := attempt(&warm, st, now, 1, cell.Peek); is.Limited != (used > 0) {
			t.Fatalf("%v to %v: %d used, and then %+v", l, warm, used, is)
		}
	})
}

// A state that is moved in time, or written and read, decides as it did.
func TestAWarmupIsMovedAndWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := plain(t, drawWarmup(t))
		st, now := drawWarm(t, l)
		want := attempt(&l, st, now, 2, cell.Force)
		by := rapid.Int64Range(-min(now, 1<<60), 1<<60).Draw(t, "by")
		moved := st
		if l.Shift(&moved, by); st.A < math.MaxInt64 && moved.A < math.MaxInt64 && (st.A == 0 || uint64(-by) < st.A || by > 0) {
			if got := attempt(&l, moved, now+by, 2, cell.Force); got != want && st.A < math.MaxInt64-1<<60 {
				t.Fatalf("%v moved by %d: %+v, want %+v", l, by, got, want)
			}
			if l.ShiftBack(&moved, by); !equal(moved, st) {
				t.Fatalf("%v moved by %d and back: %+v, want %+v", l, by, moved, st)
			}
		}
		text := string(l.AppendState(nil, &st))
		of, read, err := cell.ParseState(text)
		if err != nil || of != l || !equal(read, st) {
			t.Fatalf("%s is read as %v, %+v, %v", text, of, read, err)
		}
	})
}

// Whatever is forced or asked for, nothing wraps.
func TestHostileWarmupsStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawWarmup(t)
		const latest = math.MaxUint64 - maxWarmupNS // that is read from a text
		warmth := uint64(l.Burst) * 1e6
		st := cell.State{
			A: rapid.OneOf(rapid.SampledFrom([]uint64{0, aDayIn2027, math.MaxInt64, latest}), rapid.Uint64Range(0, latest)).Draw(t, "free"),
			B: rapid.OneOf(rapid.SampledFrom([]uint64{0, warmth}), rapid.Uint64Range(0, warmth)).Draw(t, "warmth"),
		}
		now := rapid.OneOf(rapid.SampledFrom([]int64{0, math.MaxInt64}), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "now")
		surviveAll(t, l, st, now, rapid.OneOf(rapid.Just(int64(cell.MaxCost)), rapid.Int64Range(0, cell.MaxCost)).Draw(t, "n"))
		for range 5 {
			l.Decide(&st, now, cell.MaxCost, cell.Force)
			l.Book(&st, now, cell.MaxCost)
			wantSane(t, l, st, now, 1, cell.Take)
		}
	})
}

func BenchmarkWarmup(b *testing.B) {
	l, st := mustLiteral(b, "1000/1s,warmup=5s"), cell.State{}
	now := int64(aDayIn2027)
	b.ReportAllocs()
	for b.Loop() {
		if l.Decide(&st, now, 1, cell.Take).Limited {
			b.Fatal("limited")
		}
		now += 3_000_000
	}
}
