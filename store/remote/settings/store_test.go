package settings

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// Store is the settings of an engine.
type Store struct {
	*Settings
	hands       *celldtest.Hands
	pokes, told atomic.Int32 // how often something has changed, and here
	polls       atomic.Int32
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
	if o.Policies = (&policy.Set{}); o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Changed = func(here bool) {
		if s.pokes.Add(1); here {
			s.told.Add(1)
		}
	}
	o.Poll = func() { s.polls.Add(1) }
	s.Settings = New(o)
	return s
}

// inFakeTime runs a test with a Store and its engine, both in fake time.
func inFakeTime(t *testing.T, o Options, test func(t *testing.T, s *Store, e *celldtest.Ailing)) {
	t.Helper()
	linktest.InFakeTime(t, func(t *testing.T, e *celldtest.Ailing, dial func(ctx context.Context, to string) (net.Conn, error)) {
		s := newStoreBy(t, o, dial)
		test(t, s, e)
		s.Close()
		s.Link.Close()
	})
}

// do runs a command on the engine.
func (s *Store) do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	return linktest.Do(t, s.Link, args...)
}

// lines is a log that tests read while it is written.
type lines struct{ celldtest.LogBuffer }

func (l *lines) log() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }
