package waits

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/failure"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
	"celld/store/remote/settings"
	"celld/store/remote/view"
)

// Store decides on all by changes. Only those who wait are in it.
type Store struct {
	waits    *Waits
	views    *view.Views
	queues   *queue.Queues
	settings *settings.Settings
	failure  *failure.Decider
	link     *link.Link
	policies *policy.Set
}

// newStore is a Store on an engine that is connected to by dial; nil: without a connection.
func newStore(t testing.TB, prefix string, dial func(ctx context.Context, to string) (net.Conn, error)) *Store {
	s := &Store{policies: &policy.Set{}}
	of := link.Options{Prefix: prefix, PerHashSlot: prefix + view.IDsKey, Timeout: 500 * time.Millisecond}
	if dial == nil {
		s.link = link.New(of)
	} else {
		of.Timeout = 10 * time.Second
		s.link, _ = linktest.Dial(t, dial, of)
	}
	s.failure = failure.New(failure.Options{Policies: s.policies, Log: slog.New(slog.DiscardHandler),
		NewID: func(us int64) uint64 { return s.views.NewID(us) }, Counts: &failure.Counts{}})
	s.settings = settings.New(settings.Options{
		Link: s.link, Prefix: prefix, Timeout: of.Timeout, Policies: s.policies, Log: slog.New(slog.DiscardHandler),
		Changed: func(here bool) { s.waits.FreedAll(here) }, Poll: func() {},
	})
	s.views = view.New(view.Options{
		Link: s.link, Prefix: prefix, Timeout: of.Timeout, Policies: s.policies, EpochOf: s.settings.EpochOf, Counts: &view.Counts{},
		Changed: func(...string) {}, Freed: func(key string) { s.waits.Freed(key) },
	})
	s.queues = queue.New(1<<30, s.link.DownAt)
	s.waits = New(Options{
		Link: s.link, Prefix: prefix, Timeout: of.Timeout, Policies: s.policies, Log: slog.New(slog.DiscardHandler),
		Views: s.views, Enqueue: func(c *view.Change) { s.queues.Enqueue(c) }, Failure: s.failure, Settings: s.settings.Read,
	})
	return s
}

func (s *Store) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	if len(reqs) == 1 && s.waits.Waits(&reqs[0], a.NowNS) {
		return s.waits.Enter(&reqs[0], a, w)
	}
	s.waits.Take(&reqs[0], a, time.Now().Add(s.waits.Timeout), s.waits.Enqueue, w.Wake)
	return false
}

func (s *Store) Leave(r *store.TakeRequest, why error) bool { return s.waits.Leave(r, why) }

func (s *Store) Waiting() (callers, keys int64) { return s.waits.Waiting() }

func (s *Store) WaitingFor(c *store.Call) int64 { return s.waits.WaitingFor(c) }

// changed changes a key, and waits for that.
func (s *Store) changed(t testing.TB, key string, decide func(v *view.View)) {
	t.Helper()
	done := make(chan error, 1)
	s.queues.Enqueue(s.views.NewChange([]string{s.waits.Prefix + key}, time.Now().Add(s.waits.Timeout), decide,
		func(err error) { done <- err }))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (s *Store) release(t testing.TB, key string, id int64) {
	s.changed(t, key, func(v *view.View) { _, _ = v.Release([]byte(key), id, store.Access{NowNS: v.NowNS}) })
}

func (s *Store) give(t testing.TB, key, limit string) {
	s.changed(t, key, func(v *view.View) {
		_, _ = v.Give([]byte(key), linktest.Literal(t, limit), nil, 1, store.Access{NowNS: v.NowNS})
	})
}

// do runs a command on the engine.
func (s *Store) do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	return linktest.Do(t, s.link, args...)
}

func setPolicyOf(t *testing.T, s *Store, name, limit string, o policy.Options) bool {
	t.Helper()
	did, err := linktest.Told(t, func(done func(bool, error)) {
		s.settings.SetPolicy(name, []cell.Limit{*linktest.Literal(t, limit)}, o, done)
	})
	if err != nil {
		t.Fatal(err)
	}
	return did
}

func modesOf(text string) failure.Modes {
	m, err := failure.Parse(text)
	if err != nil {
		panic(err)
	}
	return m
}

const atNS int64 = 1_700_000_000_000_000_000

type signal chan struct{}

func (s signal) Wake() { s <- struct{}{} }

// lines is a log that tests read while it is written.
type lines struct{ celldtest.LogBuffer }

func (l *lines) log() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// Release and Give are asked for, and nobody waits for them.
func (s *Store) Release(key []byte, id int64, _ store.Access) (bool, error) {
	s.later(key, func(v *view.View) { _, _ = v.Release(key, id, store.Access{NowNS: v.NowNS}) })
	return true, nil
}

func (s *Store) GiveBack(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, _ store.Access) (int64, error) {
	s.later(key, func(v *view.View) { _, _ = v.GiveBack(key, l, p, n, takenNS, store.Access{NowNS: v.NowNS}) })
	return n, nil
}

func (s *Store) later(key []byte, decide func(v *view.View)) {
	s.waits.Enqueue(s.views.NewChange([]string{s.waits.Prefix + string(key)}, time.Now().Add(s.waits.Timeout), decide, func(error) {}))
}

func (s *Store) SetMaxWaiters(most int64) { s.waits.SetMost(most) }

// ThrottleBatch is for store.Limiter. No call of CL.THROTTLE waits.
func (s *Store) ThrottleBatch([]store.Request, store.Access, store.Waker) bool {
	panic("it is not asked")
}

// CountBatch is for store.Limiter. No INCR waits.
func (s *Store) CountBatch([]store.CountRequest, store.Access, store.Waker) bool {
	panic("it is not asked")
}
