package keyspace

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/settings"
	"celld/store/remote/view"
)

// Store is all keys of an engine.
type Store struct {
	*Keyspace
	views   *view.Views
	hands   *celldtest.Hands
	flushed []string
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
	of := link.Options{Prefix: o.Prefix, Timeout: o.Timeout}
	if dial == nil {
		o.Link = link.New(of)
	} else {
		o.Link, s.hands = linktest.Dial(t, dial, of)
	}
	s.views = view.New(view.Options{
		Link: o.Link, Prefix: o.Prefix, Timeout: o.Timeout, Policies: &policy.Set{}, Counts: &view.Counts{},
		EpochOf: func(*policy.Limit) uint64 { return 0 }, Changed: func(...string) {}, Freed: func(string) {},
	})
	o.Own = func(key string) bool { return settings.Own(key) || view.Own(key) }
	o.Shows = s.views.Shows
	o.Flushed = func(names []string) { s.flushed = append(s.flushed, names...) }
	s.Keyspace = New(o)
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

// do runs a command on the engine.
func (s *Store) do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	return linktest.Do(t, s.Link, args...)
}
