package cell_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/cell/lease"
)

// To give a call back at once, or while its window, sub-window or entry is there, leaves the key as if the call had not been made: also
// where its clock was behind another's, which has written the state. An engine that takes over may be behind by milliseconds.
func TestGivingBackUndoesTheCall(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		if l.Algo == cell.Conc {
			return
		}
		l = plain(t, l)
		st, now := drawHistory(t, l, cell.Take)
		now -= min(now-1, rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, l.PeriodNS)).Draw(t, "behind"))
		without := clone(st)
		cost := rapid.Int64Range(1, l.Capacity()).Draw(t, "cost")
		if d := decide(&l, &st, now, cost, cell.Take); d.Limited {
			return
		}
		taken, at := l.TakenNS(&st, now), now
		if taken == math.MaxInt64 {
			return // the bucket is full again after the last instant there is: how long after is not stored
		}
		for range rapid.IntRange(0, 5).Draw(t, "others") { // they come later, and pass without that call too
			now += rapid.Int64Range(1, max(1, l.PeriodNS/4)).Draw(t, "pause")
			before := clone(st)
			if d := decide(&l, &st, now, 1, cell.Take); d.Limited {
				st = before
			} else {
				decide(&l, &without, now, 1, cell.Take)
			}
		}
		if l.Algo == cell.Window && l.EndNS(&st) != l.EndNS(&without) || l.Algo == cell.Window && l.EndNS(&st) <= uint64(now) {
			return // without that call its window had begun later
		}
		l.GiveBack(&st, now, &l.Shape, []lease.Lease{{Cost: cost, TakenNS: taken, ExpiryNS: uint64(now)}})
		for _, cost := range []int64{0, 1, l.Capacity()} {
			got, want := attempt(&l, st, now, cost, cell.Take), attempt(&l, without, now, cost, cell.Take)
			if l.Algo == cell.GCRA && now != at && (got.Limited || !want.Limited) && got.Remaining <= want.Remaining {
				continue // part of it had flowed back by then
			}
			if got != want {
				t.Fatalf("%v, lease until %d taken at %d, cost %d at %d: %+v, want %+v", l, taken, at, cost, now, got, want)
			}
		}
	})
}

// What was taken in a window, a sub-window or a span that is over is not given to the next.
func TestNothingIsGivenBackToAnotherWindow(t *testing.T) {
	for _, text := range []string{"9/1m,algo=window", "9/1m,algo=window,align=clock", "9/minute", "9/1m,algo=slide",
		"9/1m,algo=slide,buckets=6", "9/1m,algo=log"} {
		l := mustLiteral(t, text)
		var st cell.State
		const start = aDayIn2027 / 60e9 * 60e9
		decide(&l, &st, start, 5, cell.Take)
		later := int64(start + 60e9)
		if l.Algo == cell.Slide && l.Buckets == 0 { // that counts in the next one, too
			later += 60e9
		}
		decide(&l, &st, later, 3, cell.Take)
		before := l.Decide(&st, later, 0, cell.Peek)
		l.GiveBack(&st, later, &l.Shape, []lease.Lease{{Cost: 5, TakenNS: start, ExpiryNS: uint64(later)}})
		if after := l.Decide(&st, later, 0, cell.Peek); after != before {
			t.Errorf("%s: %+v became %+v", text, before, after)
		}
		l.GiveBack(&st, later, &l.Shape, []lease.Lease{{Cost: 2, TakenNS: uint64(later), ExpiryNS: uint64(later)},
			{Cost: 5, TakenNS: start, ExpiryNS: uint64(later)}})
		if after := l.Decide(&st, later, 0, cell.Peek); after.Remaining != before.Remaining+2 {
			t.Errorf("%s: %+v became %+v, want 2 more", text, before, after)
		}
	}
}

// Leases end at their own instants: it does not matter whether they are given back then, or later and together, before the next call.
func TestItDoesNotMatterWhenLeasesAreGivenBack(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, _ algorithm, l cell.Limit) { giveBackEarlyAndLate(t, l) })
	t.Run("warmup", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { giveBackEarlyAndLate(t, drawOptions(t, drawWarmup(t))) })
	})
}

func giveBackEarlyAndLate(t *rapid.T, l cell.Limit) {
	var held []lease.Lease
	id := uint64(0)
	var early, late cell.State // given back at the end of each lease; before the next call
	now := drawInstant(t)
	var d cell.Decision
	due := func() (ended []lease.Lease) {
		slices.SortStableFunc(held, func(a, b lease.Lease) int { return cmp.Compare(a.ExpiryNS, b.ExpiryNS) })
		for len(held) > 0 && held[0].ExpiryNS <= uint64(now) {
			ended, held = append(ended, held[0]), held[1:]
		}
		return ended
	}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		now += rapid.OneOf(rapid.Just(drawPause(t, l, now, d)), rapid.Int64Range(0, l.PeriodNS/4)).Draw(t, "pause")
		ended := due()
		for _, one := range ended {
			l.GiveBack(&early, int64(one.ExpiryNS), &l.Shape, []lease.Lease{one})
		}
		if len(ended) > 1 {
			ended = rapid.Permutation(ended).Draw(t, "ended")
		}
		l.GiveBack(&late, now, &l.Shape, ended)
		cost := rapid.Int64Range(1, 5).Draw(t, "cost")
		takenNS := now
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0:
			if given := l.Give(&early, now, cost); given != l.Give(&late, now, cost) {
				t.Fatalf("%v gives %d at %d, or another", l, given, now)
			}
			continue
		case 1:
			if !l.Bookable() || cost > l.Capacity() {
				continue
			}
			l.Fit(&early, now, cost)
			l.Fit(&late, now, cost)
			wait := l.Book(&early, now, cost)
			if wait != l.Book(&late, now, cost) {
				t.Fatalf("%v books %d ns ahead at %d, or another", l, wait, now)
			}
			if wait > math.MaxInt64/4 {
				return
			}
			takenNS += int64(wait)
		default:
			mode := rapid.SampledFrom([]cell.Mode{cell.Take, cell.Take, cell.Force}).Draw(t, "mode")
			d = decide(&l, &early, now, cost, mode)
			if got := decide(&l, &late, now, cost, mode); got != d {
				t.Fatalf("%v, cost %d at %d: %+v, want %+v", l, cost, now, got, d)
			}
			if d.Limited && mode == cell.Take {
				continue
			}
		}
		if lasts := rapid.Int64Range(0, 2*l.PeriodNS).Draw(t, "lasts"); lasts > 0 {
			id++
			held = append(held, lease.Lease{ID: id, Cost: cost, TakenNS: l.TakenNS(&early, takenNS), ExpiryNS: uint64(now + lasts)})
		}
	}
}
