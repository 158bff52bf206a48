package memory_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// takeLease asks on terms of a lease.
func takeLease(s *memory.Store, terms store.Terms, cost int64, calls ...store.Call) *waiter {
	w := &waiter{s: s}
	w.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost, Terms: &terms}}
	if s.TakeBatch(w.reqs[:], memtest.At(clock()), w) {
		w.doneNS.Store(clock())
	}
	return w
}

// lease is the ID of what was granted; 0: nothing yet.
func (w *waiter) lease() int64 {
	if w.waits() {
		return 0
	}
	return w.reqs[0].Terms.Lease
}

// forever is a wait that is longer than any test.
const forever = int64(1000 * time.Hour)

// What a lease holds, and those wait for, lets the first of them go at once when it is released, settled or renewed, and when it ends.
func TestWhatLetsGoOfALease(t *testing.T) {
	set := func(tb testing.TB, s *memory.Store, text string) {
		if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(tb, text)}, policy.Options{}); err != nil {
			tb.Fatal(err)
		}
	}
	for _, limit := range []string{
		"2/1h,algo=conc", "@2/1h,algo=conc", "2/100h", "2/100h,algo=window", "2/100h,algo=slide", "2/100h,algo=slide,buckets=5",
		"2/100h,algo=log",
		"@2/100h",
	} {
		for _, c := range []struct {
			name  string
			after time.Duration
			do    func(tb testing.TB, s *memory.Store, id int64)
		}{
			{"end", time.Hour, nil},
			{"release", time.Minute, func(tb testing.TB, s *memory.Store, id int64) { s.Release([]byte("k"), id, memtest.At(clock())) }},
			{"settle", time.Minute, func(tb testing.TB, s *memory.Store, id int64) { s.Settle([]byte("k"), id, 1, memtest.At(clock())) }},
			{"sooner", 2 * time.Minute, func(tb testing.TB, s *memory.Store, id int64) {
				s.Renew([]byte("k"), id, int64(time.Minute), memtest.At(clock()))
			}},
			{"later", time.Minute + 2*time.Hour, func(tb testing.TB, s *memory.Store, id int64) {
				s.Renew([]byte("k"), id, int64(2*time.Hour), memtest.At(clock()))
			}},
			{"delete", time.Minute, func(tb testing.TB, s *memory.Store, id int64) { s.Delete([]byte("k"), clock()) }},
			{"rename", time.Minute, func(tb testing.TB, s *memory.Store, id int64) {
				s.Rename([]byte("k"), []byte("l"), memtest.At(clock()))
			}},
			{"policy", time.Minute, func(tb testing.TB, s *memory.Store, id int64) {
				p := s.Policy([]byte("p")).Limits[0].Limit
				p.Count++
				set(tb, s, string(p.AppendText(nil)))
				if !p.Bookable() {
					return
				}
				s.Release([]byte("k"), id, memtest.At(clock()))
			}},
		} {
			if c.name == "policy" && limit[0] != '@' {
				continue
			}
			inBubble(t, func(t *testing.T, s *memory.Store) {
				start := clock()
				one := func() store.Call { return memtest.Call(t, "k", limit) }
				if limit[0] == '@' {
					set(t, s, limit[1:])
					one = func() store.Call {
						p := s.Policy([]byte("p"))
						return store.CallOf([]byte("k"), p.Limits[0])
					}
				}
				terms := store.Terms{}
				if c := one(); c.Limit.Algo != cell.Conc {
					terms.LeaseNS = int64(time.Hour)
				}
				first := takeLease(s, terms, 2, one())
				terms.Mode, terms.MaxNS = store.Wait, forever
				second, third := takeLease(s, terms, 1, one()), takeLease(s, terms, 1, one())
				if !first.granted() || !second.waits() || !third.waits() {
					t.Fatal(limit, c.name, first.taken(), second.taken(), third.taken())
				}
				celldtest.Pass(time.Minute)
				if c.do != nil {
					c.do(t, s, first.lease())
				}
				celldtest.Pass(500 * time.Hour)
				if !second.granted() || second.at(start) != c.after || second.lease() == 0 || third.granted() && third.at(start) < c.after {
					t.Errorf("%s, %s: %v: %+v, %d", limit, c.name, second.at(start), second.taken(), second.lease())
				}
				if !third.granted() {
					t.Errorf("%s, %s: the third: %+v", limit, c.name, third.taken())
				}
				third.leave(nil)
			})
		}
	}
}

// One who waits behind leases is refused at once only when he would pass too late whatever is released.
func TestWhatIsSureOfAWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		one := func() store.Call { return memtest.Call(t, "k", "10/10s") }
		plainly(s, 6, one())
		held := takeLease(s, store.Terms{LeaseNS: forever}, 4, one())
		if w := await(s, 2*time.Second-1, 6, one()); !w.taken().Limited || w.waits() || w.taken().RetryAfterNS != 6e9 {
			t.Errorf("it would not pass for 2 s without the lease: %+v", w.taken())
		}
		w := await(s, 3*time.Second, 6, one())
		if !w.waits() || !memtest.Did(s.Release([]byte("k"), held.lease(), memtest.At(clock()))) {
			t.Errorf("it may pass: %+v", w.taken())
		}
		start := clock()
		celldtest.Pass(5 * time.Second)
		if !w.granted() || w.at(start) != 2*time.Second {
			t.Errorf("%v: %+v", w.at(start), w.taken())
		}
		if w := ask(s, store.Reserve, time.Second, 10, one()); !w.denied() {
			t.Errorf("reserved: %+v", w.taken())
		}
	})
	// Of a window it is not known when it would pass without a lease that has a cost.
	inBubble(t, func(t *testing.T, s *memory.Store) {
		one := func() store.Call { return memtest.Call(t, "k", "10/10s,algo=window") }
		plainly(s, 6, one())
		lead := takeLease(s, store.Terms{}, 1, one(), memtest.Call(t, "l", "5/1m,algo=conc")) // k's only leads to l's
		if w := await(s, 2*time.Second, 4, one()); !w.denied() || lead.lease() == 0 {
			t.Errorf("nothing flows back: %+v", w.taken())
		}
		held := takeLease(s, store.Terms{LeaseNS: forever}, 2, one())
		w := await(s, 2*time.Second, 3, one())
		if !w.waits() || !memtest.Did(s.Release([]byte("k"), held.lease(), memtest.At(clock()))) {
			t.Errorf("it may pass: %+v", w.taken())
		}
		if synctest.Wait(); !w.granted() {
			t.Errorf("%+v", w.taken())
		}
	})
}

// A call that waits for a lease passes as of the end of that lease, even if somebody looks at the key later.
func TestNobodyPassesBeforeALeaseEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		one := func() store.Call { return memtest.Call(t, "k", "10/10s") }
		plainly(s, 5, one())
		takeLease(s, store.Terms{LeaseNS: 3e9}, 5, one())
		w := await(s, 10*time.Second, 6, one())
		start := clock()
		celldtest.Pass(2 * time.Second)
		if _, err := s.Take([]store.Call{one()}, store.TakeOptions{Mode: cell.Peek}, memtest.At(start+35e8)); err != nil {
			t.Fatal(err)
		}
		celldtest.Pass(5 * time.Second)
		if !w.granted() || w.at(start) != 3e9 {
			t.Errorf("%v: %+v", w.at(start), w.taken())
		}
	})
}

// What is reserved has its lease at once, which lasts from the moment on that was told. Released before, it has taken nothing; a repeat
// is told how long it still has to wait. Behind others who wait it is denied.
func TestAReservedLease(t *testing.T) {
	for _, limit := range []string{"1/1m,burst=1", "60/1h,burst=1", "1/1m,algo=window", "1/minute", "1/1m,warmup=1m,cold=1.01",
		"2/2m,burst=2"} {
		for _, how := range []string{"release", "end", "keep"} {
			inBubble(t, func(t *testing.T, s *memory.Store) {
				s.SetWall(clock(), clock())
				one := func() store.Call { return memtest.Call(t, "k", limit) }
				plainly(s, one().Limit.Capacity(), one())
				reserve := func() *waiter {
					return takeLease(s,
						store.Terms{Mode: store.Reserve, MaxNS: forever, LeaseNS: int64(time.Hour), Name: "x", Bound: true}, 1, one())
				}
				var waits [4]uint64 // of plain calls
				look := func(i int) { waits[i] = plainly(s, 1, one()).taken().RetryAfterNS }
				look(0)
				w := reserve()
				if w.lease() == 0 || !w.granted() || w.reqs[0].Terms.WaitNS != waits[0] {
					t.Fatalf("%s: %+v, %+v", limit, w.taken(), w.reqs[0].Terms)
				}
				look(1)
				celldtest.Pass(time.Second)
				if again := reserve(); again.lease() != w.lease() || again.reqs[0].Terms.WaitNS != waits[0]-1e9 {
					t.Errorf("%s: again: %+v, %+v", limit, again.taken(), again.reqs[0].Terms)
				}
				look(2)
				switch how {
				case "release":
					s.Release([]byte("k"), w.lease(), memtest.At(clock()))
					look(3)
					if waits[3] > waits[0]-1e9 || waits[2] <= waits[3] {
						t.Errorf("%s: plain calls wait for %v", limit, waits)
					}
				case "end":
					celldtest.Pass(time.Hour + time.Duration(waits[0]) - 2*time.Second)
					if !memtest.Did(s.Renew([]byte("k"), w.lease(), int64(2*time.Second), memtest.At(clock()))) {
						t.Errorf("%s: it ends before the hour is over", limit)
					}
					celldtest.Pass(2 * time.Second)
					if memtest.Did(s.Release([]byte("k"), w.lease(), memtest.At(clock()))) {
						t.Errorf("%s: it does not end", limit)
					}
				case "keep":
					next := await(s, time.Hour, 1, one())
					if behind := reserve(); !behind.granted() || behind.lease() != w.lease() {
						t.Errorf("%s: a repeat: %+v", limit, behind.taken())
					}
					terms := store.Terms{Mode: store.Reserve, MaxNS: forever, LeaseNS: 1e9}
					if behind := takeLease(s, terms, 1, one()); !behind.denied() || behind.lease() != 0 || !next.waits() {
						t.Errorf("%s: behind another: %+v", limit, behind.taken())
					}
				}
				celldtest.Pass(10 * time.Hour)
			})
		}
	}
}

// A timer that is late costs a semaphore no more than that, and a bucket nothing.
func TestLateLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lateClock := func() int64 { return (clock() + 6e6) / 7e6 * 7e6 }
		s := memory.New(memory.Options{Now: lateClock})
		one := func() store.Call { return memtest.Call(t, "k", "1/1h,burst=1") }
		takeLease(s, store.Terms{LeaseNS: 1e9}, 1, one())
		start := clock()
		w := takeLease(s, store.Terms{LeaseNS: 1e9, Mode: store.Wait, MaxNS: forever}, 1, one())
		next := takeLease(s, store.Terms{Mode: store.Wait, MaxNS: forever}, 1, one())
		celldtest.Pass(3 * time.Second)
		if !w.granted() || !next.granted() || w.at(start) > time.Second+8*time.Millisecond ||
			next.at(start) > 2*time.Second+16*time.Millisecond {
			t.Errorf("%v and %v", w.at(start), next.at(start))
		}
	})
}

// Real goroutines, real time: a thousand wait for three places, leave, release and renew. No more than three hold one, everybody is
// answered, and in the end all is free.
func TestManyWaitForASemaphore(t *testing.T) {
	s := memory.New(memory.Options{Shards: 4})
	clock := func() int64 { return time.Now().UnixNano() }
	limit := memtest.MustParse(t, "3/1h,algo=conc")
	var inFlight, passed atomic.Int64
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			key := []byte("k")
			woken := make(chan struct{})
			reqs := []store.TakeRequest{{Calls: []store.Call{{Key: key, Limit: &limit}},
				TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: forever}}}}
			if i%10 == 0 {
				rate := memtest.MustParse(t, "100000/1s,burst=1")
				reqs[0].Calls = append(reqs[0].Calls, store.Call{Key: []byte("rate"), Limit: &rate})
			}
			if !s.TakeBatch(reqs, memtest.At(clock()), wakerFunc(func() { close(woken) })) {
				if i%3 == 0 && s.Leave(&reqs[0], nil) {
					return
				}
				if i%7 == 0 {
					s.Leave(&reqs[0], store.ErrRefused)
				}
				<-woken
			}
			if reqs[0].Taken.Limited || reqs[0].Err != nil {
				if i%7 != 0 || reqs[0].Err != nil {
					t.Errorf("%d: %+v, %v", i, reqs[0].Taken, reqs[0].Err)
				}
				return
			}
			passed.Add(1)
			if inFlight.Add(1) > 3 {
				t.Error("more than three")
			}
			id := reqs[0].Terms.Lease
			if i%5 == 0 {
				s.Renew(key, id, 1e15, memtest.At(clock()))
			}
			inFlight.Add(-1)
			if !memtest.Did(s.Release(key, id, memtest.At(clock()))) {
				t.Errorf("%d is not released", i)
			}
		})
	}
	group.Wait()
	if callers, keys := s.Waiting(); callers != 0 || keys != 0 || passed.Load() < 500 {
		t.Errorf("%d callers wait for %d keys, %d have passed", callers, keys, passed.Load())
	}
	if taken, err := s.Take([]store.Call{{Key: []byte("k"), Limit: &limit}}, store.TakeOptions{Cost: 3},
		memtest.At(clock())); err != nil || taken.Limited {
		t.Errorf("not all is free: %+v, %v", taken, err)
	}
}
