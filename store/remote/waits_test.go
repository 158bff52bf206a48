package remote

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/store"
)

// caller is a call of a test.
type caller struct {
	t     *testing.T
	s     *Store
	reqs  [1]store.TakeRequest
	done  chan struct{}
	began time.Time
	ended time.Time
}

func (c *caller) Wake() {
	c.ended = time.Now()
	close(c.done)
}

func takeCall(t *testing.T, key, limit string) store.Call {
	l := limitOf(t, limit)
	return store.Call{Key: []byte(key), Limit: &l}
}

func policyCall(s *Store, key, name string) store.Call {
	p := s.policies.PolicyNamed(name)
	return store.Call{Key: []byte(key), Limit: &p.Limit, Policy: p.ID}
}

// ask has a call decided, by its terms.
func (s *Store) askOn(t *testing.T, terms store.Terms, cost int64, calls ...store.Call) *caller {
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

func (s *Store) await(t *testing.T, longest time.Duration, cost int64, calls ...store.Call) *caller {
	return s.askOn(t, store.Terms{Mode: store.Wait, MaxNS: int64(longest)}, cost, calls...)
}

func (s *Store) plainly(t *testing.T, cost int64, calls ...store.Call) *caller {
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
	harness.Eventually(t, fmt.Sprintf("%d wait", callers), func() bool {
		s.waits.mu.Lock()
		defer s.waits.mu.Unlock()
		looked := 0
		for _, v := range s.waits.calls {
			if v.looked || v.with != nil {
				looked++
			}
		}
		return looked == callers && len(s.waits.calls) == callers
	})
}

func testStores(t *testing.T, n int) (all []*Store) {
	socket := startRedis(t)
	for range n {
		s := newTestStore(t, socket, Options{})
		t.Cleanup(s.waits.close)
		all = append(all, s)
	}
	return all
}

// Those who wait are served in their order, each at its moment and none before.
func TestWaitersOfOneProcess(t *testing.T) {
	for _, limit := range []string{"20/1s,burst=1", "20/1s,burst=3", "4/200ms,algo=window", "20/1s,burst=1,warmup=1ms", "10/500ms,algo=log", "10/500ms,algo=slide"} {
		t.Run(limit, func(t *testing.T) {
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
			l := limitOf(t, limit)
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
	if got := s.await(t, 35*time.Second, 1, takeCall(t, "k", limit)).answered(); !got.Limited || got.RetryAfterNS < uint64(35*time.Second) || got.RetryAfterNS > uint64(40*time.Second) {
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
	if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
		t.Errorf("%d callers, %d keys", callers, keys)
	}
}

// Callers of several processes share a rate, and no more than the rate passes. Those who leave cost nothing.
func TestWaitersOfSeveralProcesses(t *testing.T) {
	const stores, each, rate, lasts = 3, 20, 200, 3 * time.Second
	all := testStores(t, stores)
	shares, late := crowdOf(t, all, each, rate, lasts, 10)
	t.Log(shares, late)
	sum := 0
	for i, n := range shares {
		if sum += n; n == 0 {
			t.Errorf("%d has nothing", i)
		}
	}
	if most := int(rate*lasts/time.Second) + 1 + rate/20; sum > most {
		t.Errorf("%d passed, want %d at most", sum, most)
	}
}

// crowdOf has callers of several processes wait for one state until some time has passed; one of so many leaves after it has waited for
// a while, 0: none does. It returns how many were granted in each process, and how late they were, sorted.
func crowdOf(t *testing.T, all []*Store, each, rate int, lasts time.Duration, leaves int) (shares []int, late []time.Duration) {
	limit := fmt.Sprintf("%d/1s,burst=1", rate)
	end := time.Now().Add(lasts)
	shares = make([]int, len(all))
	var mu sync.Mutex
	var moments []time.Time
	var crowd sync.WaitGroup
	for i, s := range all {
		for n := range each {
			crowd.Go(func() {
				for time.Now().Before(end) {
					c := s.await(t, time.Minute, 1, takeCall(t, "k", limit))
					if leaves > 0 && n%leaves == 0 {
						if s.Leave(&c.reqs[0], nil) {
							continue
						}
					}
					if c.answered().Limited {
						t.Error("it is denied")
					}
					mu.Lock()
					if c.ended.Before(end) {
						shares[i]++
					}
					moments = append(moments, c.ended)
					mu.Unlock()
				}
			})
		}
	}
	crowd.Wait()
	slices.SortFunc(moments, func(a, b time.Time) int { return a.Compare(b) })
	interval := time.Second / time.Duration(rate)
	for i := 1; i < len(moments); i++ {
		late = append(late, moments[i].Sub(moments[i-1])-interval)
	}
	slices.Sort(late)
	return shares, late[max(0, len(late)-5):]
}
