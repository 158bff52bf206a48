package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// job asks for a lease under a name, and waits.
func job(s *memory.Store, name string, most time.Duration, cost int64, calls ...store.Call) *waiter {
	terms := store.Terms{Mode: store.Wait, MaxNS: int64(most), Name: name}
	if !calls[0].Limit.HoldsLeases() {
		terms.LeaseNS = int64(time.Hour)
	}
	return takeLease(s, terms, cost, calls...)
}

// When the first goes, its first follower takes its place.
func TestAFollowerKeepsThePlace(t *testing.T) {
	for how := range 4 {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			calls := func() []store.Call {
				return []store.Call{memtest.Call(t, "k", "1/1h,algo=conc"), memtest.Call(t, "l", "9/1s")}
			}
			job(s, "before", time.Minute, 1, calls()...)
			start := clock()
			most := []time.Duration{3 * time.Hour, 3 * time.Hour, 3 * time.Hour, time.Minute}[how]
			a := job(s, "x", most, 1, calls()...)
			behind := job(s, "y", 3*time.Hour, 1, calls()...)
			b, c := job(s, "x", 2*time.Hour, 1, calls()...), job(s, "x", 3*time.Minute, 1, calls()...)
			switch how {
			case 0:
				a.leave(nil)
			case 1:
				a.leave(store.ErrRefused)
			case 2:
				a.leave(errUnblocked)
			}
			celldtest.Pass(10 * time.Minute)
			if a.granted() || how > 0 && a.woken.Load() != 1 || !b.waits() || !c.denied() || c.at(start) != 3*time.Minute {
				t.Fatalf("%d: %+v, %+v", how, a.taken(), c.taken())
			}
			d := job(s, "x", 2*time.Hour, 1, calls()...)
			if how%2 == 0 { // the last has the place
				b.leave(nil)
				b = d
			}
			celldtest.Pass(110 * time.Minute)
			if !b.granted() || b.at(start) != time.Hour || !d.granted() || d.lease() != b.lease() || behind.waits() != false ||
				behind.granted() && behind.at(start) != 2*time.Hour {
				t.Errorf("%d: %v: %+v, %+v, %v", how, b.at(start), b.taken(), d.taken(), behind.at(start))
			}
		})
	}
}

// However many ask under few names, each name is granted once at a time, all who asked under it are told the same, and nobody is left.
func TestCoalescedByChance(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			s := waitingStore()
			var all []*waiter
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch rapid.IntRange(0, 7).Draw(rt, "what") {
				case 0:
					if len(all) > 0 {
						rapid.SampledFrom(all).Draw(rt, "who").leave(
							rapid.SampledFrom([]error{store.ErrRefused, errUnblocked}).Draw(rt, "why"))
					}
				case 1:
					celldtest.Pass(time.Duration(rapid.Int64Range(0, 40).Draw(rt, "s")) * time.Second)
				case 2:
					if len(all) > 0 {
						s.Release([]byte("k"), rapid.SampledFrom(all).Draw(rt, "released").lease(), memtest.At(clock()))
					}
				default:
					calls := []store.Call{memtest.Call(rt, "k", "2/30s,algo=conc")}
					if rapid.Bool().Draw(rt, "two") {
						calls = append(calls, memtest.Call(rt, "l", "1/1s,burst=1"))
					}
					name := fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "name"))
					all = append(all, job(s, name, time.Duration(rapid.Int64Range(0, 100).Draw(rt, "most"))*time.Second,
						rapid.Int64Range(1, 2).Draw(rt, "cost"), calls...))
				}
				synctest.Wait()
				for i, w := range all {
					if w.woken.Load() > 1 || w.granted() && w.lease() == 0 {
						rt.Fatalf("%d: woken %d times, %+v, %d", i, w.woken.Load(), w.taken(), w.lease())
					}
				}
			}
			celldtest.Pass(10 * time.Minute)
			for i, w := range all {
				if w.waits() {
					rt.Fatalf("%d still waits", i)
				}
			}
			for s.Sweep(clock()) {
			}
			if callers, keys := s.Waiting(); callers != 0 || keys != 0 || s.Len(clock()) != 0 || s.Named() != 0 {
				rt.Fatalf("%d callers wait for %d keys, %d names, %d keys are held", callers, keys, s.Named(), s.Len(clock()))
			}
		})
	})
}
