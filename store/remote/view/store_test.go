package view

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/failure"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
)

// Store decides on all by Views.
type Store struct {
	*Views
	queues *queue.Queues
	stats  link.Stats
	counts Counts
	hands  *celldtest.Hands
	epochs map[uint32]uint64

	mu      sync.Mutex
	changed []string // keys
}

// newStore is a Store without a connection.
func newStore(o Options) *Store { return newStoreBy(nil, o, nil) }

func newTestStore(t testing.TB, socket string, o Options) *Store {
	t.Helper()
	return newStoreBy(t, o, linktest.Socket(socket))
}

func newStoreBy(t testing.TB, o Options, dial func(ctx context.Context, to string) (net.Conn, error)) *Store {
	s := &Store{}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Policies == nil {
		o.Policies = &policy.Set{}
	}
	of := link.Options{Prefix: o.Prefix, PerHashSlot: o.Prefix + IDsKey, Timeout: o.Timeout, Time: o.Time, Stats: &s.stats}
	if dial == nil {
		o.Link = link.New(of)
	} else {
		o.Link, s.hands = linktest.Dial(t, dial, of)
	}
	o.EpochOf = func(p *policy.Limit) uint64 { return s.epochs[p.ID] }
	o.Changed = func(names ...string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed = append(s.changed, names...)
	}
	o.Freed = func(string) {}
	o.Counts = &s.counts
	s.Views = New(o)
	s.queues = queue.New(1<<30, o.Link.DownAt)
	return s
}

// inFakeTime runs a test with a Store and its engine, both in fake time.
func inFakeTime(t *testing.T, o Options, test func(t *testing.T, s *Store, e *celldtest.Ailing)) {
	t.Helper()
	linktest.InFakeTime(t, func(t *testing.T, e *celldtest.Ailing, dial func(ctx context.Context, to string) (net.Conn, error)) {
		s := newStoreBy(t, o, dial)
		test(t, s, e)
		s.Link.Close()
	})
}

// testStores are Stores on one engine.
func testStores(t testing.TB, n int) (all []*Store) {
	socket := linktest.StartRedis(t)
	for range n {
		all = append(all, newTestStore(t, socket, Options{}))
	}
	return all
}

type signal chan struct{}

func (s signal) Wake() { s <- struct{}{} }

const atNS int64 = 1_700_000_000_000_000_000

// decide asks for a change, and waits for its outcome.
func (s *Store) decide(keys []string, decide func(v *View)) error {
	names, done := make([]string, len(keys)), make(chan error, 1)
	for i, key := range keys {
		names[i] = s.Prefix + key
	}
	s.queues.Enqueue(s.NewChange(names, s.deadline(), decide, func(err error) { done <- err }))
	return <-done
}

// takeNow decides on a Take by a change.
func (s *Store) takeNow(r *store.TakeRequest) { s.takeAs(r, nil) }

func (s *Store) takeAs(r *store.TakeRequest, may store.Right) {
	var keys []string
	for i := range r.Calls {
		keys = append(keys, string(r.Calls[i].Key))
	}
	err := s.decide(keys, func(v *View) {
		one := [1]store.TakeRequest{*r}
		v.TakeBatch(one[:], store.Access{NowNS: v.NowNS, May: may}, nil)
		r.Taken, r.Err = one[0].Taken, one[0].Err
	})
	if err != nil {
		r.Taken, r.Err = store.Taken{}, err
	}
}

// plainly takes so much of some limits.
func (s *Store) plainly(t testing.TB, cost int64, calls ...store.Call) store.TakeRequest {
	t.Helper()
	r := store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost}}
	s.takeNow(&r)
	return r
}

func takeCall(t testing.TB, key, limit string) store.Call {
	return store.Call{Key: []byte(key), Limit: linktest.Literal(t, limit)}
}

// byItself decides without an engine.
func (s *Store) byItself() *failure.Decider {
	modes, _ := failure.Parse("local")
	return failure.New(failure.Options{Modes: modes, Policies: s.Policies, NewID: s.NewID, Log: slog.New(slog.DiscardHandler),
		Counts: &failure.Counts{}})
}

// did is the answer to those who may do everything.
func did(done bool, err error) bool {
	if err != nil {
		panic(err)
	}
	return done
}

func (s *Store) pidOf(t *testing.T) int {
	t.Helper()
	info, _ := s.do(t, "INFO", "server").ToString()
	_, info, _ = strings.Cut(info, "process_id:")
	id, _, _ := strings.Cut(info, "\r")
	pid, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
