package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/cell/lease"
)

// To give a call back at once, or while its window, sub-window or entry is there, leaves the key as if the call had not been made.
func TestGivingBackUndoesTheCall(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		if l.Algo == cell.Conc {
			return
		}
		l = plain(t, l)
		st, now := drawHistory(t, l, cell.Take)
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
		l.GiveBack(&st, now, &l.Shape, []lease.Lease{{Cost: cost, TakenNS: taken}})
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
		l.GiveBack(&st, later, &l.Shape, []lease.Lease{{Cost: 5, TakenNS: start}})
		if after := l.Decide(&st, later, 0, cell.Peek); after != before {
			t.Errorf("%s: %+v became %+v", text, before, after)
		}
		l.GiveBack(&st, later, &l.Shape, []lease.Lease{{Cost: 2, TakenNS: uint64(later)}, {Cost: 5, TakenNS: start}})
		if after := l.Decide(&st, later, 0, cell.Peek); after.Remaining != before.Remaining+2 {
			t.Errorf("%s: %+v became %+v, want 2 more", text, before, after)
		}
	}
}
