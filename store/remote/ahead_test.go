package remote

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/ahead"
	"celld/store/remote/link/linktest"
)

// aheadStores are Stores on one engine that take ahead, and whose time a test sets.
func aheadStores(t testing.TB, n int, lasts time.Duration) (all []*Store, now *atomic.Int64) {
	socket := linktest.StartRedis(t)
	now = &atomic.Int64{}
	now.Store(4_102_444_800_000_000_000) // ahead of the engine, which lets keys expire by its own
	for range n {
		all = append(all, newTestStore(t, socket, Options{Time: now.Load, Denials: 100,
			Ahead: AheadTimes{All: ahead.Ms(lasts.Milliseconds())}}))
	}
	return all, now
}

// settles waits until nothing is under way.
func (s *Store) settles(t testing.TB) {
	t.Helper()
	celldtest.Eventually(t, "nothing is under way", func() bool { return s.queues.Bytes() == 0 })
}

// takes takes a cost from limits of a key, and reports whether it passes.
func (s *Store) takes(t testing.TB, cost int64, key string, limits ...string) store.TakeRequest {
	t.Helper()
	var pairs []string
	for _, l := range limits {
		pairs = append(pairs, key, l)
	}
	now := time.Now().UnixNano()
	if s.options.Time != nil {
		now = s.options.Time()
	}
	reqs := []store.TakeRequest{{Calls: s.callsOf(t, pairs...), TakeOptions: store.TakeOptions{Cost: cost}}}
	if w := make(signal, 1); !s.TakeBatch(reqs, store.Access{NowNS: now}, w) {
		<-w
	}
	r := reqs[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	s.settles(t)
	return r
}

// Several instances take ahead of drawn calls, and package cell says that each call that passes would also pass if nobody took ahead.
func TestAheadAdmitsNoMore(t *testing.T) {
	for _, limits := range [][]string{
		{"100/1s"}, {"40/2s,burst=90"}, {"60/1s,algo=window,align=clock"}, {"60/1s,algo=slide"}, {"90/3s,algo=slide,buckets=3"},
		{"50/1s,burst=60", "200/5s,algo=window,align=clock"}, {"80/1s,algo=slide", "100/2s"},
	} {
		t.Run(limits[0], func(t *testing.T) {
			lasts := time.Duration(60+rand.IntN(140)) * time.Millisecond
			stores, now := aheadStores(t, 3, lasts)
			states := make([]cell.State, len(limits))
			passed, most := int64(0), time.Duration(1)
			for i := range 3000 {
				if i%30 == 0 { // calls come in bursts, or seldom
					most = []time.Duration{1, 1, time.Millisecond, 10 * time.Millisecond, 60 * time.Millisecond}[rand.IntN(5)]
				}
				now.Add(rand.Int64N(int64(most)))
				r := stores[rand.IntN(3)].takes(t, 1+rand.Int64N(3), "k", limits...)
				if r.Taken.Limited {
					continue
				}
				passed++
				for i := range limits {
					l := r.Calls[i].Limit
					l.Fit(&states[i], now.Load(), r.Cost)
					if d := l.Decide(&states[i], now.Load(), r.Cost, cell.Take); d.Limited {
						t.Fatalf("with %s ahead, a call of %d passes that %s denies: %+v", lasts, r.Cost, limits[i], d)
					}
				}
			}
			byUnits := int64(0)
			for _, s := range stores {
				byUnits += s.stats.Ahead.Decisions.Load()
			}
			t.Logf("%s ahead: %d pass, %d by units", lasts, passed, byUnits)
			if byUnits == 0 {
				t.Error("no unit was used")
			}
		})
	}
}

// TestAheadAnswers: an instance that is alone answers as if it took nothing ahead, and asks the engine seldom.
func TestAheadAnswers(t *testing.T) {
	for _, limits := range [][]string{
		{"1000/366d"}, {"1000/1h,algo=window"}, {"1000/1h,algo=slide"}, {"1000/1h,algo=slide,buckets=6"},
		{"1000/1h,algo=window", "2000/366d", "3000/1h,algo=slide"},
	} {
		stores, _ := aheadStores(t, 1, 10*time.Second)
		s, used := stores[0], int64(0)
		calls := int64(0)
		for used < 900 {
			held := s.ahead.Held([]byte("k")) // which an answer of the engine's counts as used
			r := s.takes(t, 1+rand.Int64N(2), "k", limits...)
			used, calls = used+r.Cost, calls+1
			for i := range limits {
				d := r.Calls[i].Decision
				if r.Taken.Limited || r.Taken.Granted != r.Cost || d.Limited || d.Limit-d.Remaining < used ||
					d.Limit-d.Remaining > used+held {
					t.Fatalf("%s: after %d, %+v and %+v", limits[i], used, r.Taken, d)
				}
			}
		}
		asked := s.stats.Requests.Load()
		if byUnits := s.stats.Ahead.Decisions.Load(); byUnits < calls*9/10 || asked > calls/2 {
			t.Errorf("%s: of %d calls units decided %d, and %d requests were sent", limits, calls, byUnits, asked)
		}
	}
}

// What is left over goes back when a Store is drained, and none of the limit is lost.
func TestAheadGivesBack(t *testing.T) {
	for _, limits := range [][]string{
		{"1000/366d"}, {"1000/1h,algo=window"}, {"1000/1h,algo=slide"}, {"1000/1h,algo=window", "2000/366d"},
	} {
		stores, _ := aheadStores(t, 2, 10*time.Second)
		for range 20 {
			stores[0].takes(t, 1, "k", limits...)
		}
		taken, decided := stores[0].stats.Ahead.Taken.Load(), stores[0].stats.Ahead.Decisions.Load()
		if taken <= decided {
			t.Fatalf("%d units were taken, and %d used", taken, decided)
		}
		if left := 1000 - stores[1].takes(t, 1, "k", limits...).Calls[0].Decision.Remaining; left <= 21 {
			t.Errorf("%s: the other sees %d as used", limits, left)
		}
		for range 3 { // so that what the other has taken is not the last
			stores[0].takes(t, 1, "k", limits...)
		}
		stores[1].ahead.GiveBack()
		stores[1].settles(t)
		if !stores[0].Drain(context.Background())() {
			t.Error("it is not drained")
		}
		n := &stores[0].stats.Ahead
		if n.GivenBack.Load()+n.Ended.Load()+n.Decisions.Load() != n.Taken.Load() {
			t.Errorf("of %d units %d were used, %d given back, %d ended", n.Taken.Load(), n.Decisions.Load(), n.GivenBack.Load(),
				n.Ended.Load())
		}
		used := 1000 - stores[1].takes(t, 1, "k", limits...).Calls[0].Decision.Remaining
		if n.Ended.Load() == 0 && used != 25 || used < 25 {
			t.Errorf("%s: %d are used in the end, want 25", limits, used)
		}
	}
}

// What is left of units goes back with the request for the next ones while calls come and a script decides, and else by itself.
func TestAheadExchanges(t *testing.T) {
	for limit, exchanges := range map[string]bool{
		"1000/30d": true, "1000/1h,algo=window": true, "1000/30d 1000/1h,algo=window": false, "1000/1h,algo=slide": false,
	} {
		stores, _ := aheadStores(t, 2, 100*time.Millisecond)
		s, n, limits := stores[0], &stores[0].stats.Ahead, strings.Fields(limit)
		for range 20 {
			s.takes(t, 1, "k", limits...)
		}
		sent, taken := s.stats.Requests.Load(), n.Taken.Load()
		celldtest.Eventually(t, "all has gone back", func() bool {
			return n.Taken.Load() > taken == exchanges && s.ahead.Held([]byte("k")) == 0
		})
		s.settles(t)
		if n.GivenBack.Load()+n.Decisions.Load() != n.Taken.Load() || s.stats.Requests.Load()-sent != 2 {
			t.Errorf("%s: of %d units %d were used, %d have gone back, with %d requests", limit, n.Taken.Load(), n.Decisions.Load(),
				n.GivenBack.Load(), s.stats.Requests.Load()-sent)
		}
		if used := 1000 - stores[1].takes(t, 1, "k", limits...).Calls[0].Decision.Remaining; used != 21 {
			t.Errorf("%s: %d are used in the end, want 21", limit, used)
		}
	}
}

// The scripts take units back while these last: of a window as many as it counts, of a bucket if nobody has taken since.
func TestAheadReturns(t *testing.T) {
	stores, now := aheadStores(t, 2, 10*time.Second)
	s, other, n := stores[0], stores[1], &stores[0].stats.Ahead
	for i := range 400 {
		limit, key := []string{"1000/1h", "1000/1h,algo=window"}[rand.IntN(2)], strconv.Itoa(i)
		l := s.callsOf(t, key, limit)[0].Limit
		field := string(l.Shape.AppendText(nil))
		state := func() cell.State {
			text, _ := s.do(t, "HGET", key, field).ToString()
			_, st, err := cell.ParseState(text)
			if err != nil && text != "" {
				t.Fatalf("%s: %v", text, err)
			}
			return st
		}
		for range 2 + rand.IntN(20) {
			s.takes(t, 1, key, limit)
		}
		held, mark := s.ahead.Held([]byte(key)), state().A
		what := []string{"nothing", "taken", "given", "gone", "late"}[rand.IntN(5)]
		switch what {
		case "taken":
			other.takes(t, 1+rand.Int64N(5), key, limit)
		case "given":
			other.takes(t, -1-rand.Int64N(30), key, limit)
		case "gone":
			s.do(t, "DEL", key)
		case "late":
			now.Add(int64(s.ahead.Lasts("")))
		}
		st, before := state(), n.GivenBack.Load()
		goes := held > 0 && st.A == mark && what != "late"
		s.ahead.GiveBackOf([]byte(key))
		s.settles(t)
		given := n.GivenBack.Load() - before
		if l.IsBucket() { // of several portions the last, and one before it if the bucket has its TAT again
			st.A -= uint64(given * l.Bucket().IntervalNS())
		} else if goes {
			if st.B -= min(st.B, uint64(held)); st.B == 0 {
				st.A = 0
			}
		}
		if got := state(); got.A != st.A || got.B != st.B || given > held || goes != (given > 0) && what != "given" {
			t.Fatalf("%s, %s: %d of %d have gone back, and the engine has %+v, want %+v", limit, what, given, held, got, st)
		}
	}
}

// Units are void once their key is gone, and end by time.
func TestAheadEnds(t *testing.T) {
	stores, now := aheadStores(t, 1, 10*time.Second)
	s := stores[0]
	hold := func() {
		for range 10 {
			s.takes(t, 1, "k", "1000/1h,algo=window,align=clock")
		}
		if s.ahead.Held([]byte("k")) == 0 {
			t.Fatal("nothing is held")
		}
	}
	hold()
	w := make(signal, 1)
	tx := s.Open([][]byte{[]byte("k")}, store.OpenOptions{}, w)
	<-w
	tx.Keys().Delete([]byte("k"), tx.TimeNS())
	if !tx.Commit(w) {
		<-w
	}
	tx.Close()
	if n := s.ahead.Held([]byte("k")); n != 0 {
		t.Errorf("%d units are held of a key that is gone", n)
	}
	for limit, after := range map[string]time.Duration{ // when its units end
		"1000/1h,algo=window,align=clock": 10 * time.Second, "1000/366d": 10 * time.Second, "1000/1s,algo=window,align=clock": time.Second,
		"1000/1s,algo=slide": time.Second, "1000/8s,algo=slide,buckets=4": 2 * time.Second,
		"1000/1h,algo=window 1000/1s,algo=slide": time.Second,
	} {
		limits := strings.Fields(limit)
		for i := 0; i < 10 || s.ahead.Held([]byte(limit)) == 0; i++ {
			s.takes(t, 1, limit, limits...)
		}
		now.Add(int64(after))
		before := s.stats.Ahead.Decisions.Load()
		if r := s.takes(t, 1, limit, limits...); r.Taken.Limited || s.stats.Ahead.Decisions.Load() != before {
			t.Errorf("%s: a unit that has ended is used: %+v", limit, r.Taken)
		}
	}
}

// Near the edge the portions become small, and all of a limit can be taken: by one instance, and by several.
func TestAheadLeavesNothing(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, limit := range []string{"300/1h,algo=window", "300/366d"} {
			stores, _ := aheadStores(t, n, time.Minute)
			passed := 0
			for i := range 800 {
				if !stores[i%n].takes(t, 1, "k", limit).Taken.Limited {
					passed++
				} else if i%7 == 0 {
					stores[(i+1)%n].ahead.GiveBack() // as its time would
					stores[(i+1)%n].settles(t)
				}
			}
			lost := int64(0)
			for _, s := range stores {
				lost += s.stats.Ahead.Ended.Load()
			}
			if passed > 300 || int64(passed) < 300-lost || passed < 290 {
				t.Errorf("%d instances, %s: %d pass, and %d units have ended", n, limit, passed, lost)
			}
		}
	}
}

// CL.THROTTLE is decided by units, too.
func TestAheadThrottles(t *testing.T) {
	stores, now := aheadStores(t, 2, 200*time.Millisecond)
	b := bucketOf(t, 99, 2000, 10)
	tat := uint64(0)
	for i := range 2000 {
		now.Add(rand.Int64N(int64(14 * time.Millisecond)))
		s := stores[rand.IntN(2)]
		reqs := []store.Request{{Key: []byte("k"), Bucket: b, Quantity: 1 + rand.Int64N(2)}}
		s.throttleNow(reqs, store.Access{NowNS: now.Load()})
		s.settles(t)
		if d := reqs[0].Decision; !d.Limited {
			var of cell.Decision
			if tat, of, _ = b.Throttle(tat, now.Load(), reqs[0].Quantity); of.Limited {
				t.Fatalf("call %d passes, and would not by itself: %+v", i, d)
			}
		}
	}
	if n := stores[0].stats.Ahead.Decisions.Load() + stores[1].stats.Ahead.Decisions.Load(); n == 0 {
		t.Error("units have decided " + strconv.FormatInt(n, 10))
	}
}

// An instance that is alone with a bucket that is used up takes units of the near future. Until these are good it denies calls by itself,
// and each call is answered as if nothing were taken ahead.
func TestAheadOfTheNearFuture(t *testing.T) {
	for _, how := range []string{"CL.THROTTLE", "CL.TAKE"} {
		stores, now := aheadStores(t, 1, 10*time.Second)
		s, b, tat := stores[0], bucketOf(t, 399, 10, 1), uint64(0)
		call := func() (got cell.Decision) {
			if how == "CL.TAKE" {
				return s.takes(t, 1, "k", "10/1s,burst=400").Calls[0].Decision
			}
			reqs := []store.Request{{Key: []byte("k"), Bucket: b, Quantity: 1}}
			s.throttleNow(reqs, store.Access{NowNS: now.Load()})
			s.settles(t)
			return reqs[0].Decision
		}
		s.SetAhead(AheadTimes{}) // until it is used up: a bucket that is not full pays for 10 s
		for range 500 {
			call()
			tat, _, _ = b.Throttle(tat, now.Load(), 1)
		}
		s.SetAhead(AheadTimes{All: 10_000})
		sent, passed := s.stats.Requests.Load(), 0
		for i := range 3000 {
			now.Add(rand.Int64N(int64(100 * time.Millisecond)))
			got, want := call(), cell.Decision{}
			if tat, want, _ = b.Throttle(tat, now.Load(), 1); got.Limited != want.Limited || got.RetryAfterNS != want.RetryAfterNS {
				t.Fatalf("%s %d: %+v, want %+v; %d units are held", how, i, got, want, s.ahead.Held([]byte("k")))
			}
			if !got.Limited {
				passed++
			}
		}
		if sent = s.stats.Requests.Load() - sent; sent > 1000 || passed < 1000 {
			t.Errorf("%s: %d of 3,000 calls have passed, with %d requests", how, passed, sent)
		}
	}
}

// Instances that are asked for three times as much as a bucket has each ask the engine once in a while. What comes back to the bucket is
// used all the same, no more passes, and none of them denies for longer than units last.
func TestAheadPauses(t *testing.T) {
	for _, how := range []string{"CL.THROTTLE", "CL.TAKE"} {
		stores, now := aheadStores(t, 4, time.Second)
		b, lasts := bucketOf(t, 999, 100, 1), int64(stores[0].ahead.Lasts(""))
		take := func(s *Store, cost int64) (limited bool) {
			if how == "CL.TAKE" {
				return s.takes(t, cost, "k", "100/1s,burst=1000").Taken.Limited
			}
			reqs := []store.Request{{Key: []byte("k"), Bucket: b, Quantity: cost}}
			s.throttleNow(reqs, store.Access{NowNS: now.Load()})
			s.settles(t)
			return reqs[0].Decision.Limited
		}
		take(stores[0], 1000)
		tat, _, _ := b.Throttle(0, now.Load(), 1000)
		from, asked, askedNS, passed := now.Load(), int64(0), [4]int64{}, 0
		for i := range 6000 {
			now.Add(rand.Int64N(2 * int64(time.Second) / 300))
			n := rand.IntN(len(stores))
			sent := stores[n].stats.Requests.Load()
			limited := take(stores[n], 1)
			if sent = stores[n].stats.Requests.Load() - sent; sent > 0 {
				asked, askedNS[n] = asked+sent, now.Load()
			}
			if limited {
				if since := now.Load() - askedNS[n]; since > lasts {
					t.Fatalf("%s %d: denied, %s after it has asked", how, i, time.Duration(since))
				}
				continue
			}
			passed++
			var d cell.Decision
			if tat, d, _ = b.Throttle(tat, now.Load(), 1); d.Limited {
				t.Fatalf("%s %d: passes, and must not for %s", how, i, time.Duration(d.RetryAfterNS))
			}
		}
		most := float64(now.Load()-from) / float64(b.IntervalNS())
		t.Logf("%s: %d requests, %d pass of %.0f", how, asked, passed, most)
		if asked > 3000 || float64(passed) < most*0.9 {
			t.Errorf("%s: with %d requests, %d pass of %.0f", how, asked, passed, most)
		}
	}
}

// Calls that are denied as they cost too much take nothing ahead, again and again, of what remains for others.
func TestAheadLeavesTheRest(t *testing.T) {
	for _, limit := range []string{"100/1h,algo=window", "100/1h,algo=slide", "100/100h,burst=100"} {
		stores, _ := aheadStores(t, 2, 10*time.Second)
		for range 60 {
			stores[0].takes(t, 1, "k", limit)
		}
		stores[0].ahead.GiveBack()
		stores[0].settles(t)
		taken := stores[0].stats.Ahead.Taken.Load()
		for range 200 {
			if !stores[0].takes(t, 50, "k", limit).Taken.Limited {
				t.Fatalf("%s: 50 pass, of 40", limit)
			}
		}
		if n := stores[0].stats.Ahead.Taken.Load() - taken; n > 0 {
			t.Errorf("%s: with denied calls, %d units are taken", limit, n)
		}
	}
}

// A call for the whole burst passes once the bucket is full, though it asks all the time.
func TestAheadOfAWholeBurst(t *testing.T) {
	stores, now := aheadStores(t, 1, time.Second)
	for range 5 {
		stores[0].takes(t, 1, "k", "100/10s,burst=100")
	}
	for tries := 0; stores[0].takes(t, 100, "k", "100/10s,burst=100").Taken.Limited; tries++ {
		if now.Add(int64(20 * time.Millisecond)); tries > 150 {
			t.Fatal("it is denied for 3 s")
		}
	}
}

// What no celld has written stays as it is.
func TestWindowsOfOthersStay(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Time: func() int64 { return in2100 }})
	for _, state := range []string{"until=0000000004102444800 used=1", "until=4102444900000000000 used=007",
		"until=9999999999999999999 used=1", "until=4102444900000000000 used=99999999999999999999"} {
		text := "limit=50/1h,algo=window " + state
		s.do(t, "DEL", "k")
		s.views.Forget([]string{"k"})
		s.do(t, "HSET", "k", "window/1h", text)
		reqs := []store.TakeRequest{{Calls: s.callsOf(t, "k", "50/1h,algo=window"), TakeOptions: store.TakeOptions{Cost: 1}}}
		if w := make(signal, 1); !s.TakeBatch(reqs, store.Access{NowNS: in2100}, w) {
			<-w
		}
		if held, _ := s.do(t, "HGET", "k", "window/1h").ToString(); held != text || reqs[0].Err != store.ErrWrongType {
			t.Errorf("%s: %v, and then it is %s", state, reqs[0].Err, held)
		}
	}
}

// The scripts grant what package ahead computes from the same numbers.
func TestAheadScripts(t *testing.T) {
	stores, now := aheadStores(t, 1, 0)
	s := stores[0]
	for i := range 300 {
		s.SetAhead(AheadTimes{All: ahead.Ms(60_000 * (1 + rand.IntN(20)))}) // so that none ends meanwhile
		lasts := s.ahead.Lasts("")
		b := bucketOf(t, rand.Int64N(10_000), 1+rand.Int64N(5000), 1+rand.Int64N(20_000))
		if b.ToleranceNS() < 2*int64(lasts) {
			continue
		}
		key := strconv.Itoa(i)
		tat := uint64(0)
		if rand.IntN(4) > 0 {
			tat = uint64(now.Load() + rand.Int64N(b.ToleranceNS()))
			s.do(t, "SET", key, strconv.FormatUint(tat, 10))
		}
		for range 2 { // the second is hot, and asks for units
			reqs := []store.Request{{Key: []byte(key), Bucket: b, Quantity: 1}}
			s.throttleNow(reqs, store.Access{NowNS: now.Load()})
			if next, _, _ := b.Throttle(tat, now.Load(), 1); next > 0 {
				tat = next
			}
		}
		s.settles(t)
		most := (b.ToleranceNS() - max(int64(tat)-now.Load(), 0)) / b.IntervalNS() / 8 // nobody is known to be alone
		if b.ToleranceNS() >= exactNS {                                                // no script decides
			most = 0
		}
		if held := s.ahead.Held([]byte(key)); held != max(0, min(most, 1)) { // one call has passed lately
			t.Fatalf("%+v, %s ahead, TAT %d after now: %d are held, want %d at most", b, lasts, int64(tat)-now.Load(), held, most)
		}
		if held := s.ahead.Held([]byte(key)); held > 0 {
			tat = max(tat, uint64(now.Load()+int64(lasts))) + uint64(b.IntervalNS())
		}
		if text, _ := s.do(t, "GET", key).ToString(); text != strconv.FormatUint(tat, 10) && tat > uint64(now.Load()) {
			t.Fatalf("%+v, %s ahead: the engine has %s, want %d", b, lasts, text, tat)
		}
	}
}

// Callers use their keys for something else once they have asked, and units follow the keys as they were. Of three calls at once the first
// asks for units, and the others wait behind it.
func TestAheadKeysAreItsOwn(t *testing.T) {
	stores, now := aheadStores(t, 1, 10*time.Second)
	s, b, used := stores[0], bucketOf(t, 999, 1, 1000), int64(0)
	for used < 900 {
		held := s.ahead.Held([]byte("k"))
		var reqs []store.Request
		for range 1 + rand.IntN(4) {
			reqs = append(reqs, store.Request{Key: []byte("k"), Bucket: b, Quantity: 1 + rand.Int64N(2)})
		}
		keys := slices.Clone(reqs)
		if w := make(signal, 1); !s.ThrottleBatch(reqs, store.Access{NowNS: now.Load()}, w) {
			for i := range keys {
				keys[i].Key[0] = 'x'
			}
			<-w
		}
		s.settles(t)
		for i := range reqs {
			used += reqs[i].Quantity
		}
		held = max(held, s.ahead.Held([]byte("k")))
		if d := reqs[len(reqs)-1].Decision; len(reqs) == 1 && (d.Limit-d.Remaining < used || d.Limit-d.Remaining > used+held) {
			t.Fatalf("%d are used, and a call is answered %+v while %d units are held", used, d, held)
		}
	}
	if n := s.ahead.Held([]byte("x")); n != 0 {
		t.Errorf("%d units are held of another key", n)
	}
}

// A call that units do not decide finds what was used, and so do the replies after it.
func TestAheadBesideOtherCalls(t *testing.T) {
	stores, now := aheadStores(t, 1, 10*time.Second)
	s, used := stores[0], int64(0)
	limit, b := "1000/1h,algo=window", bucketOf(t, 999, 1, 1000)
	take := func(o store.TakeOptions) cell.Decision {
		reqs := []store.TakeRequest{{Calls: s.callsOf(t, "k", limit), TakeOptions: o}}
		if w := make(signal, 1); !s.TakeBatch(reqs, store.Access{NowNS: now.Load()}, w) {
			<-w
		}
		s.settles(t)
		return reqs[0].Calls[0].Decision
	}
	throttle := func(quantity int64) cell.Decision {
		reqs := []store.Request{{Key: []byte("b"), Bucket: b, Quantity: quantity}}
		s.throttleNow(reqs, store.Access{NowNS: now.Load()})
		s.settles(t)
		return reqs[0].Decision
	}
	for range 20 {
		for range 12 {
			used++
			if d := take(store.TakeOptions{Cost: 1}); d.Limit-d.Remaining < used {
				t.Fatalf("%d are used, and %d of %d remain", used, d.Remaining, d.Limit)
			}
			throttle(1)
		}
		used += 2
		if d := take(store.TakeOptions{Cost: 2, Mode: cell.Force}); d.Limit-d.Remaining != used {
			t.Fatalf("%d are used, and after FORCE %d of %d remain", used, d.Remaining, d.Limit)
		}
		throttle(2)
		if d := throttle(-1); d.Limit-d.Remaining != used-1 {
			t.Fatalf("%d are used, and after a refund %d of %d remain", used-1, d.Remaining, d.Limit)
		}
		used--
		take(store.TakeOptions{Cost: -1})
	}
	if s.stats.Ahead.Decisions.Load() == 0 {
		t.Error("units have decided nothing")
	}
}

// Calls of other buckets on the same key go with the call that asks for units, and these are charged by their own.
func TestAheadBesideOtherBuckets(t *testing.T) {
	stores, now := aheadStores(t, 1, 10*time.Second)
	s, key := stores[0], []byte("k")
	quick, slow := bucketOf(t, 99_999, 100, 1), bucketOf(t, 9_999, 1, 10)
	tat := uint64(now.Load())
	for range 100 {
		var reqs []store.Request
		for range 2 + rand.IntN(4) {
			b := slow
			if rand.IntN(2) == 0 {
				b = quick
			}
			reqs = append(reqs, store.Request{Key: key, Bucket: b, Quantity: 1})
		}
		s.throttleNow(reqs, store.Access{NowNS: now.Load()})
		s.settles(t)
		for i := range reqs {
			if !reqs[i].Decision.Limited {
				tat += uint64(reqs[i].Bucket.IntervalNS())
			}
		}
		held := uint64(s.ahead.Held(key) * slow.IntervalNS()) // at most
		text, _ := s.do(t, "GET", "k").ToString()
		if is, err := strconv.ParseUint(text, 10, 64); err != nil || is < tat || is > tat+held+uint64(10*time.Second) {
			t.Fatalf("the engine has TAT %s, %v, and what was used makes it %d; %d units are held", text, err, tat, s.ahead.Held(key))
		}
	}
	if s.stats.Ahead.Decisions.Load() == 0 {
		t.Error("units have decided nothing")
	}
}
