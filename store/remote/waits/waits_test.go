package waits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
)

// caller is a call of a test.
type caller struct {
	t      testing.TB
	s      *Store
	reqs   [1]store.TakeRequest
	done   chan struct{}
	began  time.Time
	ended  time.Time
	order  *[]*caller // where answers are noted; nil: nowhere
	ticket int
}

// Wake is called under the lock of the waits, so answers are noted in their order.
func (c *caller) Wake() {
	c.ended = time.Now()
	if c.order != nil {
		*c.order = append(*c.order, c)
	}
	close(c.done)
}

func takeCall(t testing.TB, key, limit string) store.Call {
	return store.Call{Key: []byte(key), Limit: linktest.Literal(t, limit)}
}

func policyCall(s *Store, key, name string) store.Call {
	p := s.policies.PolicyNamed(name)
	return store.CallOf([]byte(key), p.Limits[0])
}

// askOn asks for calls by these terms.
func (s *Store) askOn(t testing.TB, terms store.Terms, cost int64, calls ...store.Call) *caller {
	c := &caller{t: t, s: s, done: make(chan struct{}), began: time.Now()}
	c.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost}}
	if terms != (store.Terms{}) {
		c.reqs[0].Terms = &terms
	}
	if s.TakeBatch(c.reqs[:], store.Access{NowNS: time.Now().UnixNano()}, c) {
		c.Wake()
	}
	return c
}

func (s *Store) awaitNoted(t testing.TB, longest time.Duration, order *[]*caller, ticket int, call store.Call) *caller {
	c := &caller{t: t, s: s, done: make(chan struct{}), began: time.Now(), order: order, ticket: ticket}
	c.reqs[0] = store.TakeRequest{Calls: []store.Call{call}, TakeOptions: store.TakeOptions{Cost: 1,
		Terms: &store.Terms{Mode: store.Wait, MaxNS: int64(longest)}}}
	if s.TakeBatch(c.reqs[:], store.Access{NowNS: time.Now().UnixNano()}, c) {
		t.Error("it does not wait")
	}
	return c
}

func (s *Store) await(t testing.TB, longest time.Duration, cost int64, calls ...store.Call) *caller {
	return s.askOn(t, store.Terms{Mode: store.Wait, MaxNS: int64(longest)}, cost, calls...)
}

func (s *Store) plainly(t testing.TB, cost int64, calls ...store.Call) *caller {
	c := s.askOn(t, store.Terms{}, cost, calls...)
	<-c.done
	return c
}

func (c *caller) waits() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// answered waits for the answer.
func (c *caller) answered() store.Taken {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(3 * time.Minute):
		c.t.Fatal("no answer")
	}
	if err := c.reqs[0].Err; err != nil {
		c.t.Fatal(err)
	}
	return c.reqs[0].Taken
}

func (s *Store) waitFor(t *testing.T, callers int) {
	t.Helper()
	celldtest.Eventually(t, fmt.Sprintf("%d wait", callers), func() bool {
		s.waits.mu.Lock()
		defer s.waits.mu.Unlock()
		looked := 0
		for _, of := range s.waits.lines.OfKey {
			for _, l := range of {
				for _, v := range l.Waiters {
					if looked += len(v.Followers); v.looked {
						looked++
					}
				}
			}
		}
		return looked == callers && s.waits.room.Callers() == int64(callers)
	})
}

func testStores(t testing.TB, n int) (all []*Store) {
	socket := linktest.StartRedis(t)
	for range n {
		s := newStore(t, "", linktest.Socket(socket))
		t.Cleanup(s.waits.Close)
		all = append(all, s)
	}
	return all
}

// Those who wait are served in their order, each at its moment and none before.
func TestWaitersOfOneProcess(t *testing.T) {
	for _, limit := range []string{"20/1s,burst=1", "20/1s,burst=3", "4/200ms,algo=window", "20/1s,burst=1,warmup=1ms",
		"10/500ms,algo=log", "10/500ms,algo=slide"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			s := testStores(t, 1)[0]
			var all []*caller
			for range 24 {
				all = append(all, s.await(t, time.Minute, 1, takeCall(t, "k", limit)))
			}
			last := time.Time{}
			for i, c := range all {
				if got := c.answered(); got.Limited || got.Granted != 1 || c.reqs[0].Terms.WaitNS != 0 {
					t.Fatalf("%d: %+v", i, got)
				}
				if c.ended.Before(last) {
					t.Errorf("%d overtakes by %v", i, last.Sub(c.ended))
				}
				last = c.ended
			}
			l := *linktest.Literal(t, limit)
			least := time.Duration(l.EarnsNS(24 - 2*min(l.Capacity(), 12)))
			if took := last.Sub(all[0].began); took < least {
				t.Errorf("all pass in %v, want %v at least", took, least)
			} else {
				t.Log(took, least)
			}
		})
	}
}

// A wait that is known to be too long is refused at once, also behind others.
func TestAWaitThatIsTooLong(t *testing.T) {
	s := testStores(t, 1)[0]
	const limit = "1/10s,burst=1"
	if s.plainly(t, 1, takeCall(t, "k", limit)).answered().Limited {
		t.Fatal("the first is denied")
	}
	if got := s.await(t, 5*time.Second, 1, takeCall(t, "k", limit)).answered(); !got.Limited || got.RetryAfterNS < uint64(5*time.Second) {
		t.Errorf("%+v", got)
	}
	var all []*caller
	for i := range 3 {
		all = append(all, s.await(t, time.Duration(10*(i+1))*time.Second, 1, takeCall(t, "k", limit)))
		s.waitFor(t, i+1)
	}
	if got := s.await(t, 35*time.Second, 1, takeCall(t, "k", limit)).answered(); !got.Limited ||
		got.RetryAfterNS < uint64(35*time.Second) || got.RetryAfterNS > uint64(40*time.Second) {
		t.Errorf("behind three: %+v", got)
	}
	if got := s.plainly(t, 1, takeCall(t, "k", limit)).answered(); !got.Limited || got.RetryAfterNS < uint64(35*time.Second) {
		t.Errorf("a plain call behind three: %+v", got)
	}
	for _, c := range all {
		if !c.waits() || !s.Leave(&c.reqs[0], nil) || s.Leave(&c.reqs[0], nil) {
			t.Error("it does not wait")
		}
	}
	s.nobodyWaits(t)
}

// Callers of several processes share a rate, and no more than the rate passes. Those who leave cost nothing.
func TestWaitersOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	const stores, each, rate, lasts = 3, 20, 200, 3 * time.Second
	all := testStores(t, stores)
	c := crowd{stores: all, each: each, rate: rate, lasts: lasts, leaves: 10}
	c.run(t)
	c.wantRate(t)
	t.Logf("shares %v, %d inverted", c.shares, c.inverted)
	if c.inverted > 0 {
		t.Errorf("%d are answered before one that came earlier", c.inverted)
	}
	sum := 0
	for i, n := range c.shares {
		if sum += n; n == 0 {
			t.Errorf("%d has nothing", i)
		}
	}
	if most := int(rate*lasts/time.Second) + 1; sum > most {
		t.Errorf("%d passed in %v, want %d at most", sum, lasts, most)
	}
}

// crowd is callers of several processes that wait for one state.
type crowd struct {
	stores     []*Store
	each, rate int
	lasts      time.Duration
	leaves     int // one of so many callers leaves while it waits; 0: none does

	granted  int // in all
	began    time.Time
	shares   []int // granted in each process before the end
	inverted int   // answers of a process before one that has come earlier there
}

func (c *crowd) run(t testing.TB) {
	limit := fmt.Sprintf("%d/1s,burst=1", c.rate)
	c.began = time.Now()
	end := c.began.Add(c.lasts)
	c.shares = make([]int, len(c.stores))
	orders := make([]*[]*caller, len(c.stores))
	var mu sync.Mutex
	var callers sync.WaitGroup
	for i, s := range c.stores {
		var coming sync.Mutex
		came := 0
		orders[i] = &[]*caller{}
		for n := range c.each {
			rnd := rand.New(rand.NewPCG(uint64(i), uint64(n)))
			callers.Go(func() {
				for time.Now().Before(end) {
					coming.Lock()
					came++
					one := s.awaitNoted(t, time.Minute, orders[i], came, takeCall(t, "k", limit))
					coming.Unlock()
					if c.leaves > 0 && n%c.leaves == 0 {
						time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond)
						if s.Leave(&one.reqs[0], nil) {
							continue
						}
					}
					if got := one.answered(); got.Limited || got.Granted != 1 {
						t.Errorf("it is denied: %+v", got)
					}
					mu.Lock()
					c.granted++
					if one.ended.Before(end) {
						c.shares[i]++
					}
					mu.Unlock()
				}
			})
		}
	}
	callers.Wait()
	for _, order := range orders {
		last := 0
		for _, one := range *order {
			if one.ticket < last {
				c.inverted++
			}
			last = max(last, one.ticket)
		}
	}
}

// wantRate checks that what was granted is no more than the rate, by the state that the engine has: it is spent up to its TAT.
func (c *crowd) wantRate(t testing.TB) {
	t.Helper()
	peek := c.stores[0].plainly(t, 0, takeCall(t, "k", fmt.Sprintf("%d/1s,burst=1", c.rate)))
	spent := time.Duration(peek.answered().ResetAfterNS) + time.Duration(peek.ended.UnixNano()-c.began.UnixNano()) // by the engine's clock
	if most := int(spent * time.Duration(c.rate) / time.Second); c.granted > most {
		t.Errorf("%d passed, want %d at most in %v", c.granted, most, spent)
	} else {
		t.Logf("%d passed, of %d at most", c.granted, most)
	}
}

// BenchmarkFairness is of four processes, in each of which 50 callers wait for one state all the time.
func BenchmarkFairness(b *testing.B) {
	for b.Loop() {
		c := crowd{stores: testStores(b, 4), each: 50, rate: 200, lasts: 10 * time.Second}
		c.run(b)
		c.wantRate(b)
		slices.Sort(c.shares)
		b.ReportMetric(float64(c.shares[0]), "least")
		b.ReportMetric(float64(c.shares[3]), "most")
		b.ReportMetric(float64(c.inverted), "inverted")
	}
}
