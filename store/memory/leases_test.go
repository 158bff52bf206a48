package memory_test

import (
	"errors"
	"slices"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

func limitOf(t testing.TB, text string) *cell.Limit {
	t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// take takes from one key, and returns whether it passed and the ID of the lease.
func take(t testing.TB, s *memory.Store, key, limit string, cost int64, terms store.Terms, now int64) (bool, int64) {
	t.Helper()
	taken, err := s.Take([]store.Call{{Key: []byte(key), Limit: limitOf(t, limit)}}, store.TakeOptions{Cost: cost, Terms: &terms},
		store.Access{NowNS: now})
	if err != nil {
		t.Fatal(err)
	}
	return !taken.Limited, terms.Lease
}

func left(t testing.TB, s *memory.Store, key, limit string, now int64) int64 {
	t.Helper()
	calls := []store.Call{{Key: []byte(key), Limit: limitOf(t, limit)}}
	if _, err := s.Take(calls, store.TakeOptions{Mode: cell.Peek}, store.Access{NowNS: now}); err != nil {
		t.Fatal(err)
	}
	return calls[0].Decision.Remaining
}

func TestASemaphore(t *testing.T) {
	s := memory.New(memory.Options{})
	const limit = "2/30s,algo=conc"
	a := store.Access{NowNS: t0}
	_, one := take(t, s, "k", limit, 1, store.Terms{}, t0)
	_, two := take(t, s, "k", limit, 1, store.Terms{}, t0)
	if passed, id := take(t, s, "k", limit, 1, store.Terms{}, t0); passed || id != 0 || one != t0/1000 || two != one+1 {
		t.Fatalf("%v, %d after %d and %d", passed, id, one, two)
	}
	if !memtest.Did(s.Renew([]byte("k"), two, 60*second, a)) || memtest.Did(s.Renew([]byte("k"), two+1, 60*second, a)) ||
		memtest.Did(s.Renew([]byte("x"), two, 60*second, a)) {
		t.Fatal("renewed another")
	}
	if !memtest.Did(s.Release([]byte("k"), one, a)) || memtest.Did(s.Release([]byte("k"), one, a)) || left(t, s, "k", limit, t0) != 1 {
		t.Fatal("released twice, or not once")
	}
	if left(t, s, "k", limit, t0+60*second-1) != 1 || left(t, s, "k", limit, t0+60*second) != 2 || s.Len(t0+60*second) != 0 {
		t.Fatal("it did not end when it should")
	}
}

func TestALeaseFlowsBack(t *testing.T) {
	for _, limit := range []string{"10/1h", "10/1h,algo=window", "10/hour", "10/1h,algo=slide", "10/1h,algo=slide,buckets=6",
		"10/1h,algo=log"} {
		s := memory.New(memory.Options{})
		s.SetWall(t0+1800*second, t0)
		take(t, s, "k", limit, 2, store.Terms{}, t0)
		_, one := take(t, s, "k", limit, 3, store.Terms{LeaseNS: second}, t0)
		_, two := take(t, s, "k", limit, 4, store.Terms{LeaseNS: 2 * second}, t0)
		if n := left(t, s, "k", limit, t0+second-1); n != 1 {
			t.Errorf("%s: %d left", limit, n)
		}
		if n := left(t, s, "k", limit, t0+second); n != 4 || memtest.Did(s.Settle([]byte("k"), one, 0, store.Access{NowNS: t0 + second})) {
			t.Errorf("%s: %d left when the first has ended", limit, n)
		}
		a := store.Access{NowNS: t0 + second}
		if !memtest.Did(s.Settle([]byte("k"), two, 1, a)) || memtest.Did(s.Settle([]byte("k"), two, 1, a)) {
			t.Errorf("%s: settled twice, or not once", limit)
		}
		if n := left(t, s, "k", limit, t0+3*second); n != 7 {
			t.Errorf("%s: %d left when the second was settled", limit, n)
		}
		_, three := take(t, s, "k", limit, 1, store.Terms{LeaseNS: second}, t0+3*second)
		a.NowNS = t0 + 3*second
		if !memtest.Did(s.Settle([]byte("k"), three, 99, a)) || left(t, s, "k", limit, a.NowNS) != 0 {
			t.Errorf("%s: more was not taken", limit)
		}
		end := t0 + 3*3600*second*40
		if left(t, s, "k", limit, int64(end)) != 10 || s.Len(int64(end)) != 0 {
			t.Errorf("%s: never full again", limit)
		}
	}
}

func TestTermsThatMakeNoSense(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, c := range []struct {
		limit string
		terms store.Terms
		want  error
	}{
		{"5/1m", store.Terms{Name: "n"}, store.ErrNoLease},
		{"5/1m", store.Terms{Bound: true}, store.ErrNoLease},
	} {
		_, err := s.Take([]store.Call{{Key: []byte("k"), Limit: limitOf(t, c.limit)}}, store.TakeOptions{Cost: 1, Terms: &c.terms},
			store.Access{NowNS: t0})
		if !errors.Is(err, c.want) || s.Len(t0) != 0 {
			t.Errorf("%s %+v: %v", c.limit, c.terms, err)
		}
	}
}

func TestWhatHoldsNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, o := range []store.TakeOptions{{Cost: 1, Mode: cell.Peek}, {Cost: 0}, {Cost: 9}} {
		for _, limit := range []string{"5/1m", "5/1m,algo=conc"} {
			o.Terms = &store.Terms{Lease: 7}
			if limit == "5/1m" {
				o.Terms.LeaseNS = second
			}
			if _, err := s.Take([]store.Call{{Key: []byte("k"), Limit: limitOf(t, limit)}}, o, store.Access{NowNS: t0}); err != nil ||
				o.Terms.Lease != 0 || s.Len(t0) != 0 {
				t.Errorf("%s, %+v: %v, %d", limit, o, err, o.Terms.Lease)
			}
		}
	}
	s.PutRule(policy.Rule{Pattern: "k"}, t0)
	for _, name := range []string{"", "n"} {
		terms := &store.Terms{Name: name}
		taken, err := s.Take(memtest.Calls(t, "k", "5/1m,algo=conc"), store.TakeOptions{Cost: 7, Terms: terms}, memtest.At(t0))
		if err != nil || taken.Granted != 7 || terms.Lease != 0 || s.Len(t0) != 0 {
			t.Errorf("an allowed call: %+v, %v, lease %d", taken, err, terms.Lease)
		}
	}
	for _, id := range []int64{-1, 0, 1} {
		if memtest.Did(s.Release([]byte("k"), id, memtest.At(t0))) || memtest.Did(s.Renew([]byte("k"), id, second, memtest.At(t0))) {
			t.Errorf("there is a lease %d", id)
		}
	}
}

func TestARepeatTakesNothing(t *testing.T) {
	for _, c := range []struct {
		limit string
		lasts int64
	}{{"5/1m,algo=conc", 0}, {"5/1m,algo=window", second}} {
		s := memory.New(memory.Options{})
		_, one := take(t, s, "k", c.limit, 3, store.Terms{LeaseNS: c.lasts, Name: "job"}, t0)
		for range 3 {
			if passed, again := take(t, s, "k", c.limit, 3, store.Terms{LeaseNS: c.lasts, Name: "job"}, t0); !passed || again != one ||
				left(t, s, "k", c.limit, t0) != 2 {
				t.Errorf("%s: %v, %d, want %d", c.limit, passed, again, one)
			}
		}
		if _, other := take(t, s, "k", c.limit, 1, store.Terms{LeaseNS: c.lasts, Name: "other"}, t0); other == one || other == 0 {
			t.Errorf("%s: %d for another name", c.limit, other)
		}
		s.Release([]byte("k"), one, store.Access{NowNS: t0})
		if _, new := take(t, s, "k", c.limit, 3, store.Terms{LeaseNS: c.lasts, Name: "job"}, t0); new <= one {
			t.Errorf("%s: %d after the first was released", c.limit, new)
		}
	}
}

// A repeat of a call for several keys is answered as the call was, also where only the other keys hold something.
func TestARepeatForSeveralKeys(t *testing.T) {
	s := memory.New(memory.Options{})
	var ids []int64
	var all []store.Taken
	for range 2 {
		calls := []store.Call{{Key: []byte("a"), Limit: limitOf(t, "9/1h")}, {Key: []byte("b"), Limit: limitOf(t, "5/1m,algo=conc")}}
		terms := &store.Terms{Name: "job"}
		taken, err := s.Take(calls, store.TakeOptions{Cost: 3, Terms: terms}, store.Access{NowNS: t0})
		if err != nil || taken.Limited {
			t.Fatal(taken, err)
		}
		ids, all = append(ids, terms.Lease), append(all, taken)
	}
	if ids[0] != ids[1] || all[0] != all[1] || all[0].Granted != 3 || all[0].RetryAfterNS != cell.Never ||
		left(t, s, "b", "5/1m,algo=conc", t0) != 2 || left(t, s, "a", "9/1h", t0) != 6 {
		t.Errorf("leases %v, answers %+v", ids, all)
	}
	// Under the name another call leads from c to a, which now has a lease that only leads, and one with a cost: that is what is repeated.
	terms := &store.Terms{Name: "job"}
	for i, list := range [][]store.Call{memtest.Calls(t, "c", "9/1h", "a", "5/1m,algo=conc"), memtest.Calls(t, "a", "5/1m,algo=conc")} {
		taken, err := s.Take(list, store.TakeOptions{Cost: 2, Terms: terms}, memtest.At(t0))
		if id := terms.Lease; err != nil || taken.Granted != 2 || id == ids[0] || i == 1 && id != ids[2] {
			t.Errorf("%d: %+v, %v, lease %d", i, taken, err, id)
		}
		ids = append(ids, terms.Lease)
	}
}

// A lease of several keys is one lease, and the first key leads to the others.
func TestALeaseOfSeveralKeys(t *testing.T) {
	s := memory.New(memory.Options{})
	const conc, rate = "5/1m,algo=conc", "5/1h"
	long := string(make([]byte, 300))
	for _, limits := range [][3]string{{conc, conc, conc}, {rate, conc, conc}, {rate, rate, rate}} {
		for how := range 3 {
			var calls []store.Call
			for i, key := range []string{"a", long, "c"} {
				calls = append(calls, store.Call{Key: []byte(key), Limit: limitOf(t, limits[i])})
			}
			terms := &store.Terms{}
			if limits[2] == rate {
				terms.LeaseNS = 60 * second
			}
			taken, err := s.Take(calls, store.TakeOptions{Cost: 2, Terms: terms}, store.Access{NowNS: t0})
			if err != nil || taken.Limited ||
				terms.Lease == 0 {
				t.Fatal(taken, err, terms.Lease)
			}
			a := store.Access{NowNS: t0 + second}
			switch how {
			case 0:
				if !memtest.Did(s.Release([]byte("a"), terms.Lease, a)) || memtest.Did(s.Release([]byte("a"), terms.Lease, a)) ||
					memtest.Did(s.Release([]byte("c"), terms.Lease, a)) {
					t.Error("not released")
				}
			case 1:
				if !memtest.Did(s.Renew([]byte("a"), terms.Lease, 90*second, a)) {
					t.Error("not renewed")
				}
				if n := left(t, s, "c", limits[2], t0+91*second-1); n != 3 {
					t.Errorf("%v: %d left", limits, n)
				}
			case 2:
				copied, err := s.Copy([]byte("c"), []byte("d"), true, a)
				if err != nil || copied != (limits[2] == rate) || memtest.Did(s.Settle([]byte("d"), terms.Lease, 0, a)) {
					t.Error("a lease was copied", copied, err)
				}
				s.Rename([]byte("a"), []byte("b"), memtest.At(t0))
				if memtest.Did(s.Release([]byte("a"), terms.Lease, a)) || !memtest.Did(s.Release([]byte("b"), terms.Lease, a)) {
					t.Error("the lease stayed")
				}
			}
			for i, key := range []string{"a", long, "c"} {
				now := t0 + int64(91*second)
				if limits[2] != rate && i > 0 && how != 1 {
					now = a.NowNS
				}
				if n := left(t, s, key, limits[i], now); n != 5 && (limits[i] != rate || limits[2] == rate) {
					t.Errorf("%v, %d: %d left of %s", limits, how, n, key)
				}
			}
			s.Flush()
		}
	}
}

// A key with leases stays where others go.
func TestAKeyWithLeasesIsNotEvicted(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 8})
	for i := range 6 {
		take(t, s, string(rune('a'+i)), "5/1m,algo=conc", 1, store.Terms{}, t0)
	}
	for i := range 100 {
		take(t, s, "x"+string(rune('0'+i)), "5/1m", 1, store.Terms{}, t0)
	}
	take(t, s, "g", "5/1h", 1, store.Terms{LeaseNS: second}, t0)
	take(t, s, "h", "5/1h", 1, store.Terms{LeaseNS: second}, t0)
	_, err := s.Take([]store.Call{{Key: []byte("y"), Limit: limitOf(t, "5/1m")}}, store.TakeOptions{Cost: 1}, store.Access{NowNS: t0})
	if _, err2 := s.Throttle([]byte("y"), cell.Bucket{}, 0, store.Access{NowNS: t0}); !errors.Is(err, store.ErrFull) || err2 != nil {
		t.Errorf("%v, %v", err, err2)
	}
	for i := range 8 {
		if _, there := s.Get([]byte{byte('a' + i)}, memtest.Untouched(t0)); !there {
			t.Errorf("%c is gone", 'a'+i)
		}
	}
	take(t, s, "y", "5/1m", 1, store.Terms{}, t0+second)
}

// A lease whose first key takes the name of another of its keys is settled once.
func TestALeaseRenamedOntoItsOtherKey(t *testing.T) {
	for _, limit := range []string{"9/1h,algo=conc", "9/1h", "9/1h,algo=log"} {
		for _, n := range []int64{0, 5} {
			s := memory.New(memory.Options{})
			calls := []store.Call{{Key: []byte("a"), Limit: limitOf(t, limit)}, {Key: []byte("b"), Limit: limitOf(t, limit)}}
			terms := store.Terms{LeaseNS: 60 * second}
			if calls[0].Limit.Algo == cell.Conc {
				terms.LeaseNS = 0
			}
			taken, err := s.Take(calls, store.TakeOptions{Cost: 2, Terms: &terms}, store.Access{NowNS: t0})
			if err != nil || taken.Limited {
				t.Fatal(taken, err)
			}
			s.Rename([]byte("a"), []byte("b"), memtest.At(t0))
			if !memtest.Did(s.Settle([]byte("b"), terms.Lease, n, store.Access{NowNS: t0})) {
				t.Errorf("%s: there is no lease", limit)
			}
			want := 9 - n
			if terms.LeaseNS == 0 {
				want = 9
			}
			if got := left(t, s, "b", limit, t0); got != want {
				t.Errorf("%s, %d: %d are left", limit, n, got)
			}
		}
	}
}

// A lease of two calls that share a state gives back what both took.
func TestALeaseOfTheSameStateTwice(t *testing.T) {
	for _, limit := range []string{"10/1h", "10/1h,algo=window", "10/1h,algo=slide", "10/1h,algo=log"} {
		s := memory.New(memory.Options{})
		calls := []store.Call{{Key: []byte("k"), Limit: limitOf(t, limit)}, {Key: []byte("k"), Limit: limitOf(t, limit)}}
		terms := store.Terms{LeaseNS: 60 * second}
		if taken, err := s.Take(calls, store.TakeOptions{Cost: 3, Terms: &terms}, store.Access{NowNS: t0}); err != nil || taken.Limited {
			t.Fatal(taken, err)
		}
		s.Release([]byte("k"), terms.Lease, store.Access{NowNS: t0})
		if got := left(t, s, "k", limit, t0); got != 10 {
			t.Errorf("%s: %d are left", limit, got)
		}
	}
}

// What is reserved with another limit, for which it waits, is given back only to the window that it was counted in.
func TestAReservedLeaseOfAnEarlierWindow(t *testing.T) {
	const window = "100/second"
	s := memory.New(memory.Options{})
	calls := func() []store.Call {
		return []store.Call{{Key: []byte("k"), Limit: limitOf(t, window)}, {Key: []byte("m"), Limit: limitOf(t, "10/15s,burst=1")}}
	}
	start := t0 - t0%second
	if _, err := s.Take(calls()[1:], store.TakeOptions{Cost: 1}, store.Access{NowNS: start}); err != nil {
		t.Fatal(err)
	}
	terms := store.Terms{Mode: store.Reserve, MaxNS: 10 * second, LeaseNS: 60 * second}
	if _, err := s.Take(calls(), store.TakeOptions{Cost: 1, Terms: &terms}, store.Access{NowNS: start}); err != nil ||
		terms.WaitNS != 3*uint64(second)/2 {
		t.Fatal(terms, err)
	}
	next := start + second + 1
	if taken, err := s.Take(calls()[:1], store.TakeOptions{Cost: 100}, store.Access{NowNS: next}); err != nil || taken.Limited {
		t.Fatal(taken, err)
	}
	s.Release([]byte("k"), terms.Lease, store.Access{NowNS: next})
	if got := left(t, s, "k", window, next); got != 0 {
		t.Errorf("%d are left in a window that is used up", got)
	}
}

// When the last lease of a limit goes, its key is told anew: where a log of the same key were only extended, a copy would keep the lease.
func TestALeaseThatGoesIsTold(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	var logs []bool
	drain := func() {
		logs = nil
		for s.Drain(func(c memory.Change) {
			if c.State.Limits == nil {
				return
			}
			for _, l := range *c.State.Limits {
				if l.Limit.KeepsCalls() {
					logs = append(logs, l.Told.Known())
				}
			}
		}) {
		}
	}
	take(t, s, "k", "10/1h,algo=log", 1, store.Terms{}, t0)
	_, id := take(t, s, "k", "10/1h", 1, store.Terms{LeaseNS: 60 * second}, t0)
	drain()
	take(t, s, "k", "10/1h,algo=log", 1, store.Terms{}, t0)
	if drain(); !slices.Equal(logs, []bool{true}) {
		t.Fatal(logs)
	}
	s.Release([]byte("k"), id, store.Access{NowNS: t0})
	if drain(); !slices.Equal(logs, []bool{false}) {
		t.Error("the log is only extended", logs)
	}
}

// What was leased from a bucket does not flow back into a window of the policy that the bucket has become.
func TestALeaseOfABucketThatBecomesAWindow(t *testing.T) {
	for i, to := range []string{"100/minute", "100/1m,algo=window", "100/1m,algo=slide", "100/1m,algo=slide,buckets=6", "100/1m,algo=log",
		"100/minute", "100/1m,algo=window", "100/1m,algo=slide", "100/1m,algo=slide,buckets=6", "100/1m,algo=log"} {
		var another *store.Terms // a lease of the window
		if i >= 5 {
			another = &store.Terms{LeaseNS: 7200 * second}
		}
		s := memory.New(memory.Options{})
		ask := func(limit string, cost, now int64, terms *store.Terms) bool {
			if _, err := s.SetPolicy("p", []cell.Limit{*limitOf(t, limit)}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			p := s.PolicyNamed("p")
			taken, err := s.Take([]store.Call{store.CallOf([]byte("k"), p.Limits[0])},
				store.TakeOptions{Cost: cost, Terms: terms}, store.Access{NowNS: now})
			if err != nil {
				t.Fatal(err)
			}
			return !taken.Limited
		}
		terms := store.Terms{LeaseNS: 7200 * second}
		ask("100/1h", 100, t0, &terms)
		ask(to, 1, t0, another)
		later := t0 + 3590*second
		if !ask(to, 100, later, nil) {
			t.Fatal(to)
		}
		s.Release([]byte("k"), terms.Lease, store.Access{NowNS: later + 15*second})
		if ask(to, 100, later+15*second, nil) {
			t.Errorf("%s: twice its count passes at one instant", to)
		}
	}
}

// A lease flows back at its end, whether or not anybody looks at its key then. One that is bound ends where the key is read from a file.
func TestALeaseFlowsBackAtItsEnd(t *testing.T) {
	for _, looks := range []bool{false, true} {
		s := memory.New(memory.Options{})
		take(t, s, "k", "20/10s", 10, store.Terms{LeaseNS: second / 2}, t0)
		take(t, s, "k", "20/10s", 10, store.Terms{}, t0)
		if looks {
			left(t, s, "k", "20/10s", t0+second*6/10)
		}
		if n := left(t, s, "k", "20/10s", t0+second*48/10); n != 18 {
			t.Errorf("looked at %v: %d left", looks, n)
		}
	}
	for _, looks := range []bool{false, true} {
		s, other := memory.New(memory.Options{}), memory.New(memory.Options{})
		take(t, s, "k", "20/10s", 10, store.Terms{LeaseNS: 60 * second, Bound: true}, t0)
		take(t, s, "k", "20/10s", 10, store.Terms{}, t0)
		var fields []store.Field
		if _, err := s.Limits([]byte("k"), memtest.At(t0), func(l *store.LimitState) {
			f, err := other.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
			if err != nil {
				t.Fatal(err)
			}
			fields = append(fields, f)
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.PutFields([]byte("k"), fields, false, memtest.At(t0+second)); err != nil {
			t.Fatal(err)
		}
		if looks {
			left(t, other, "k", "20/10s", t0+second)
		}
		if n := left(t, other, "k", "20/10s", t0+second*48/10); n != 17 { // of the 5 s, one had flowed back
			t.Errorf("read from a file, looked at %v: %d left", looks, n)
		}
	}
}

// A lease gives back no more than it holds, and nothing where its cost is kept.
func TestSettleKeeps(t *testing.T) {
	for _, n := range []int64{store.Kept, -5} {
		s := memory.New(memory.Options{})
		_, id := take(t, s, "k", "10/1h", 4, store.Terms{LeaseNS: second}, t0)
		take(t, s, "k", "10/1h", 3, store.Terms{}, t0)
		if !memtest.Did(s.Settle([]byte("k"), id, n, memtest.At(t0))) || left(t, s, "k", "10/1h", t0) != 3 {
			t.Errorf("%d: %d left", n, left(t, s, "k", "10/1h", t0))
		}
	}
}
