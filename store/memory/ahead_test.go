package memory_test

import (
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// A table whose caller keeps those who wait tells which limit makes them wait and until when, and books a call that passes soon.
func TestTakeAhead(t *testing.T) {
	s := memory.New(memory.Options{Shards: 4})
	ahead := func(aheadNS uint64, most time.Duration, calls ...store.Call) (r store.TakeRequest, binding int, againNS uint64, waits bool) {
		r = store.TakeRequest{Calls: calls,
			TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: int64(most)}}}
		binding, againNS, waits = s.TakeAhead(&r, aheadNS, memtest.At(t0))
		return r, binding, againNS, waits
	}
	const fast, slow = "10/1s,burst=1", "1/1s,burst=1"
	both := func() []store.Call { return []store.Call{memtest.Call(t, "a", fast), memtest.Call(t, "b", slow)} }
	if r, binding, again, waits := ahead(0, time.Minute, both()...); waits || binding != 0 || again != 0 || r.Err != nil ||
		r.Taken.Granted != 1 {
		t.Errorf("what passes: %d, %d, %v, %+v", binding, again, waits, r.Taken)
	}
	if r, binding, again, waits := ahead(0, time.Minute, both()...); !waits || binding != 1 || again != 1e9 || r.Terms.WaitNS != 1e9 {
		t.Errorf("what waits: %d, %d, %v, %+v", binding, again, waits, r.Terms)
	}
	r, _, _, waits := ahead(0, time.Second/2, both()...)
	if waits || !r.Taken.Limited || r.Taken.Granted != 0 || r.Taken.RetryAfterNS != 1e9 {
		t.Errorf("what waits too long: %v, %+v", waits, r.Taken)
	}
	if r, _, _, waits := ahead(1e9, time.Minute, both()...); waits || r.Taken.Limited || r.Taken.Granted != 1 || r.Terms.WaitNS != 1e9 ||
		r.Calls[1].Decision.Limited || r.Calls[1].Decision.ResetAfterNS != 1e9 { // as of that moment
		t.Errorf("what passes soon: %v, %+v, %+v", waits, r.Taken, r.Terms)
	}
	if r, _, again, waits := ahead(1e9, time.Minute, memtest.Call(t, "b", slow)); !waits || again != 2e9 || r.Terms.WaitNS != 2e9 {
		t.Errorf("behind what was booked: %d, %v, %+v", again, waits, r.Terms)
	}
	memtest.MustTake(t, s, 1, t0, []store.Call{memtest.Call(t, "c", "1/1s,algo=log")})
	if _, _, again, waits := ahead(1e9, time.Minute, memtest.Call(t, "c", "1/1s,algo=log")); !waits || again != 1e9 {
		t.Errorf("what cannot be booked: %d, %v", again, waits)
	}
	// A lease that ends before may let it pass.
	take(t, s, "d", "2/1h", 2, store.Terms{LeaseNS: 3 * second}, t0)
	if _, _, again, waits := ahead(0, time.Hour, memtest.Call(t, "d", "2/1h")); !waits || again != uint64(3*second) {
		t.Errorf("behind a lease: %d, %v", again, waits)
	}
}

// A reservation needs a place only where it stands behind others, and there it costs all that its calls take.
func TestReserveBehindOthers(t *testing.T) {
	const limit = "10/1s,burst=4"
	inBubble(t, func(t *testing.T, s *memory.Store) {
		s.SetMaxWaiters(2)
		plainly(s, 4, memtest.Call(t, "k", limit))
		plainly(s, 4, memtest.Call(t, "l", limit))
		first, second := await(s, time.Minute, 4, memtest.Call(t, "k", limit)), await(s, time.Minute, 1, memtest.Call(t, "k", limit))
		s.SetMaxWaiters(1) // who waits already stays
		if w := ask(s, store.Reserve, time.Minute, 1, memtest.Call(t, "l", limit)); w.err() != nil || !w.granted() {
			t.Errorf("where nobody waits: %+v, %v", w.taken(), w.err())
		}
		w := ask(s, store.Reserve, time.Minute, 1, memtest.Call(t, "k", limit))
		if w.err() != store.ErrTooManyWaiters || w.taken().Granted != 0 {
			t.Errorf("without a place: %+v, %v", w.taken(), w.err())
		}
		celldtest.Pass(time.Second)
		if !first.granted() || !second.granted() {
			t.Error("who waits does not pass")
		}
	})
	inBubble(t, func(t *testing.T, s *memory.Store) {
		start := clock()
		plainly(s, 4, memtest.Call(t, "k", limit))
		first := await(s, time.Minute, 1, memtest.Call(t, "k", limit))
		twice := ask(s, store.Reserve, time.Minute, 2, memtest.Call(t, "k", limit), memtest.Call(t, "k", limit))
		last := await(s, time.Minute, 1, memtest.Call(t, "k", limit))
		if !twice.granted() || twice.reqs[0].Terms.WaitNS != 5e8 {
			t.Errorf("two calls of two each: %+v, %+v", twice.taken(), twice.reqs[0].Terms)
		}
		celldtest.Pass(2 * time.Second)
		if first.at(start) != 100*time.Millisecond || last.at(start) != 600*time.Millisecond {
			t.Errorf("the others pass after %v and %v", first.at(start), last.at(start))
		}
	})
}

// Giving back to a limit that has nothing to get back still carries a block over to it, and does nothing where that is done.
func TestGiveCarriesOver(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	const old, other = "1/1s,block=1h", "2/1s,block=1h"
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", old))
	if taken := memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", old)); !taken.Limited {
		t.Fatalf("%+v", taken)
	}
	now := t0 + 60*second
	kept := func() (count int64) {
		if _, err := s.Limits([]byte("k"), memtest.Untouched(now), func(l *store.LimitState) { count = l.Limit.Count }); err != nil {
			t.Fatal(err)
		}
		return count
	}
	for _, step := range []struct {
		limit string
		count int64
		told  bool
	}{{old, 1, false}, {other, 2, true}, {other, 2, false}} {
		memtest.Drained(s)
		l := memtest.MustParse(t, step.limit)
		given, err := s.Give([]byte("k"), &l, nil, 1, memtest.Untouched(now))
		if told := memtest.Drained(s) != ""; given != 0 || err != nil || kept() != step.count || told != step.told {
			t.Errorf("%s: %d are given back, %v; the count is %d, told %v", step.limit, given, err, kept(), told)
		}
	}
}

// A field of a policy takes the place of what its policy has under the key, and no other's.
func TestFieldsOfPolicies(t *testing.T) {
	s := memory.New(memory.Options{})
	var fields []store.Field
	for _, name := range []string{"p", "q"} {
		if _, err := s.SetPolicy(name, []cell.Limit{memtest.MustParse(t, "5/1h")}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		p := s.PolicyNamed(name)
		memtest.MustTake(t, s, int64(1+len(fields)), t0, []store.Call{store.CallOf([]byte("from"), p.Limits[0])})
		fields = nil
		if _, err := s.Limits([]byte("from"), memtest.At(t0), func(l *store.LimitState) {
			f, err := s.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
			if err != nil {
				t.Fatal(err)
			}
			fields = append(fields, f)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		fields []store.Field
		added  int
		held   int64
	}{{fields[:1], 1, 1}, {fields[1:], 1, 2}, {fields, 0, 2}} {
		added, err := s.PutFields([]byte("to"), step.fields, true, memtest.At(t0))
		if st := s.Stats(t0); err != nil || added != step.added {
			t.Errorf("step %d: %d limits are new, %v; %+v", i, added, err, st)
		}
		names := map[string]bool{}
		if _, err := s.Limits([]byte("to"), memtest.At(t0), func(l *store.LimitState) { names[l.Policy.Policy.Name] = true }); err != nil ||
			int64(len(names)) != step.held {
			t.Errorf("step %d: the key holds %v, %v", i, names, err)
		}
	}
}

// A lease that was the first to end, and is renewed, does not keep those behind it from flowing back.
func TestTheFirstLeaseIsRenewed(t *testing.T) {
	for _, limit := range []string{"5/1000h", "5/1000h,algo=log"} {
		s := memory.New(memory.Options{})
		_, first := take(t, s, "k", limit, 1, store.Terms{LeaseNS: 10 * second}, t0)
		take(t, s, "k", limit, 2, store.Terms{LeaseNS: 20 * second}, t0)
		if !memtest.Did(s.Renew([]byte("k"), first, 60*second, memtest.At(t0))) {
			t.Fatal("not renewed")
		}
		for ns, want := range map[int64]int64{15 * second: 2, 25 * second: 4, 61 * second: 5} {
			copied := memory.New(memory.Options{}) // as a look gives back what has ended
			_, err := s.Limits([]byte("k"), memtest.At(t0), func(l *store.LimitState) {
				f, err := copied.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
				if err == nil {
					_, err = copied.PutFields([]byte("k"), []store.Field{f}, true, memtest.At(t0))
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			if n := left(t, copied, "k", limit, t0+ns); err != nil || n != want {
				t.Errorf("%s: after %d s %d are left, want %d; %v", limit, ns/second, n, want, err)
			}
		}
		for _, step := range [][2]int64{{15, 2}, {25, 4}, {61, 5}} {
			if n := left(t, s, "k", limit, t0+step[0]*second); n != step[1] {
				t.Errorf("%s: after %d s %d are left, want %d", limit, step[0], n, step[1])
			}
		}
	}
}

// A call may wait, and calls of a batch may not, whether the table is larger than the caches or not.
func TestAWaitBesideABatch(t *testing.T) {
	for _, keys := range []int{0, 20_000} {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			for i, key := range memtest.Keys16(keys) {
				memtest.MustAllow(t, s, key, memtest.MustLimit(t, 1, 1, 1), clock()+int64(i))
			}
			start := clock()
			plainly(s, 1, memtest.Call(t, "k", "10/1s,burst=1"))
			w := await(s, time.Minute, 1, memtest.Call(t, "k", "10/1s,burst=1"))
			batch := make([]store.TakeRequest, 2)
			for i := range batch {
				batch[i] = store.TakeRequest{Calls: memtest.Calls(t, "k", "10/1s,burst=1"),
					TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: int64(time.Minute)}}}
			}
			if !s.TakeBatch(batch, memtest.At(clock()), &waiter{}) || !batch[0].Taken.Limited || !batch[1].Taken.Limited {
				t.Errorf("a batch waits: %+v", batch)
			}
			if celldtest.Pass(time.Second); !w.granted() || w.at(start) != 100*time.Millisecond {
				t.Errorf("it passes after %v", w.at(start))
			}
			if d := (cell.Decision{}); batch[0].Calls[0].Decision == d {
				t.Error("a call of a batch is not decided")
			}
		})
	}
}
