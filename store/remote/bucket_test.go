package remote

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

func newTestStore(t testing.TB, socket string, o Options) *Store {
	return newTestStoreBy(t, o, linktest.Socket(socket))
}

// newTestStoreBy is a Store on an engine that is connected to by dial, and that nobody watches.
func newTestStoreBy(t testing.TB, o Options, dial func(ctx context.Context, to string) (net.Conn, error)) *Store {
	h := &celldtest.Hands{}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	o.Policies = &policy.Set{}
	o.link = func(by *link.Options) { by.Dial, by.Now, by.After = dial, h.Now, h.After }
	s := newStore(o)
	handsOf.Store(s, h)
	linktest.Use(t, s.link)
	return s
}

type signal chan struct{}

func (s signal) Wake() { s <- struct{}{} }

func (s *Store) throttleNow(reqs []store.Request, a store.Access) {
	w := make(signal, 1)
	if !s.ThrottleBatch(reqs, a, w) {
		<-w
	}
}

// TestScriptsDecideAsCell asks an engine and package cell the same, and compares all answers.
func TestScriptsDecideAsCell(t *testing.T) {
	socket := linktest.StartRedis(t)
	var now atomic.Int64
	now.Store(4_102_444_800_000_000_000)
	for _, denials := range []int{0, 100} {
		s := newTestStore(t, socket, Options{Prefix: fmt.Sprint(denials, ":"), Time: now.Load, Denials: denials})
		tats := map[string]uint64{}
		for batch := range 1000 {
			now.Add(rand.Int64N(1 << rand.IntN(34)))
			reqs := make([]store.Request, 1+rand.IntN(store.MaxTakes))
			for i := range reqs {
				b, err := cell.NewBucket(rand.Int64N(20)-1, 1+rand.Int64N(100), 1+rand.Int64N(60))
				if err != nil {
					t.Fatal(err)
				}
				if i > 0 && rand.IntN(2) == 0 {
					b = reqs[i-1].Bucket
				}
				reqs[i] = store.Request{Key: fmt.Append(nil, rand.IntN(4), batch/250), Bucket: b,
					Quantity: []int64{1, 1, 1, 1, 2, 3, 0, -1, -5}[rand.IntN(9)]}
			}
			s.throttleNow(reqs, store.Access{NowNS: now.Load()})
			for i, r := range reqs {
				next, want, err := r.Bucket.Throttle(tats[string(r.Key)], now.Load(), r.Quantity)
				if r.Err != nil || err != nil || r.Decision != want {
					t.Fatalf("batch %d, request %d of %d: %+v, %v, want %+v, %v", batch, i, len(reqs), r.Decision, r.Err, want, err)
				}
				if !want.Limited && r.Quantity != 0 {
					tats[string(r.Key)] = next
				}
			}
		}
		if answered := s.stats.DenialsAnswered.Load(); (answered > 0) != (denials > 0) {
			t.Errorf("with %d denials remembered, %d were answered by them", denials, answered)
		}
	}
}

// A denial under one limit says nothing about another that it becomes.
func TestDenialUnderAnotherLimit(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Denials: 100})
	s.plainly(t, 1, takeCall(t, "k", "1/1h"))
	for range 1000 { // a call that comes before the queue of the last one is gone asks the engine
		if s.plainly(t, 1, takeCall(t, "k", "1/1h")); s.stats.DenialsAnswered.Load() > 0 {
			break
		}
	}
	remembered := s.stats.DenialsAnswered.Load()
	c := s.plainly(t, 1, takeCall(t, "k", "3600/1h,burst=1"))
	if !c.reqs[0].Taken.Limited || c.reqs[0].Taken.RetryAfterNS > uint64(time.Second) {
		t.Errorf("%+v", c.reqs[0].Taken)
	}
	if n := s.stats.DenialsAnswered.Load(); remembered == 0 || n != remembered {
		t.Errorf("%d denials are remembered, %d of the limit before", n, remembered)
	}
}

// A peek comes after the call before it, also where the engine's time was known badly: the call was decided by the script, or its answer
// was held back until the instant that it was decided for.
func TestAPeekComesAfterWhatWasTaken(t *testing.T) {
	for _, known := range []time.Duration{900 * time.Millisecond, 2 * time.Millisecond} {
		s := newTestStore(t, linktest.StartRedis(t), Options{})
		bucket, err := cell.NewBucket(9, 1, 60)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		c := s.link.Clock("k")
		c.Observe(now.UnixNano(), now.Add(-known), now)
		c.Asks(now.Add(time.Hour)) // no script is to tell the time
		for _, quantity := range []int64{10, 0} {
			reqs := []store.Request{{Key: []byte("k"), Bucket: bucket, Quantity: quantity}}
			s.throttleNow(reqs, store.Access{NowNS: now.UnixNano()})
			if d := reqs[0].Decision; reqs[0].Err != nil || d.Limited || d.ResetAfterNS > 600_000_000_000 {
				t.Errorf("%d, known to %v: %+v, %v", quantity, known, d, reqs[0].Err)
			}
		}
		if n := s.stats.SetNew.Load(); (n == 1) != (known < mostEarly) {
			t.Errorf("known to %v, and %d keys were tried", known, n)
		}
	}
}

// A quantity that is out of range is that error, whatever --store-failure says while the engine does not answer.
func TestQuantityOutOfRangeWithoutTheEngine(t *testing.T) {
	s := newTestStore(t, celldtest.NewAiling(t).Socket, Options{Failures: modesOf("allow")})
	s.byHand()
	s.link.Break("k", linktest.Down)
	reqs := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 15, 30, 60), Quantity: math.MaxInt64}}
	s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
	if err := reqs[0].Err; err == nil || linktest.IsDown(err) {
		t.Error(reqs[0].Decision, err)
	}
}

const in2100 int64 = 4_102_444_800_000_000_000

func takeCall(t testing.TB, key, limit string) store.Call {
	return store.Call{Key: []byte(key), Limit: linktest.Literal(t, limit)}
}

func policyCall(s *Store, key, name string) store.Call {
	p := s.policies.PolicyNamed(name)
	return store.CallOf([]byte(key), p.Limits[0])
}

// caller is a call of a test.
type caller struct {
	t    testing.TB
	reqs [1]store.TakeRequest
	done chan struct{}
}

func (c *caller) Wake() { close(c.done) }

// askOn asks for a call, by its terms.
func (s *Store) askOn(t testing.TB, terms store.Terms, cost int64, calls ...store.Call) *caller {
	c := &caller{t: t, done: make(chan struct{})}
	c.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost}}
	if terms != (store.Terms{}) {
		c.reqs[0].Terms = &terms
	}
	if s.TakeBatch(c.reqs[:], store.Access{NowNS: time.Now().UnixNano()}, c) {
		c.Wake()
	}
	return c
}

func (s *Store) plainly(t testing.TB, cost int64, calls ...store.Call) *caller {
	c := s.askOn(t, store.Terms{}, cost, calls...)
	<-c.done
	return c
}

// answered waits for the answer.
func (c *caller) answered() store.Taken {
	c.t.Helper()
	<-c.done
	if err := c.reqs[0].Err; err != nil {
		c.t.Fatal(err)
	}
	return c.reqs[0].Taken
}

func (s *Store) takeNow(r *store.TakeRequest) {
	w := make(signal, 1)
	one := []store.TakeRequest{*r}
	if !s.TakeBatch(one, store.Access{NowNS: time.Now().UnixNano()}, w) {
		<-w
	}
	*r = one[0]
}

func testStores(t testing.TB, n int) (all []*Store) {
	socket := linktest.StartRedis(t)
	for range n {
		all = append(all, newTestStore(t, socket, Options{}))
	}
	return all
}

// do runs a command on the engine, past the Store.
func (s *Store) do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	return linktest.Do(t, s.link, args...)
}

var nothing = celldtest.ArrayOf(celldtest.BulkOf("none"))

// TestBuckets: a script takes what one limit's call costs, once.
func TestBuckets(t *testing.T) {
	l := linktest.Literal(t, "5/10s")
	for _, own := range []bool{false, true} {
		r := store.TakeRequest{Calls: []store.Call{{Limit: l, Own: own, Cost: 2}}, TakeOptions: store.TakeOptions{Cost: 1}}
		if got := scripted(&r); got == own {
			t.Errorf("with a cost of its own, %v: %v", own, got)
		}
	}
}
