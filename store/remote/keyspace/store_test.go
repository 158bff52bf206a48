package keyspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/integration_test/harness"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/settings"
	"celld/store/remote/view"
)

// Store has all keys of an engine.
type Store struct {
	*Keyspace
	views   *view.Views
	hands   *harness.Hands
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
		EpochOf: func(*policy.Policy) uint64 { return 0 }, Changed: func(...string) {}, Freed: func(string) {},
	})
	o.Own = func(key string) bool { return settings.Own(key) || view.Own(key) }
	o.Shows = s.views.Shows
	o.Flushed = func(names []string) { s.flushed = append(s.flushed, names...) }
	s.Keyspace = New(o)
	return s
}

// inFakeTime runs a test with a Store and its engine, both in fake time.
func inFakeTime(t *testing.T, o Options, test func(t *testing.T, s *Store, e *harness.Ailing)) {
	t.Helper()
	linktest.InFakeTime(t, func(t *testing.T, e *harness.Ailing, dial func(ctx context.Context, to string) (net.Conn, error)) {
		s := newStoreBy(t, o, dial)
		test(t, s, e)
		s.Link.Close()
	})
}

// startRedis runs redis-server until the test ends, and returns its socket.
func startRedis(t testing.TB) (socket string) {
	return strings.TrimPrefix(harness.StartRedis(t), "unix:")
}

// do runs a command on the engine.
func (s *Store) do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	m, err := s.Link.Client().Do(context.Background(), s.Link.Client().B().Arbitrary(args...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", args, err)
	}
	return &m
}

func isDown(err error) bool { return errors.As(err, new(*link.DownError)) }

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func array(parts ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(parts), strings.Join(parts, ""))
}

func number(n int64) string { return fmt.Sprintf(":%d\r\n", n) }

// viewReply is what a view's script answers at this moment of the engine's.
func viewReply(did string, before int64, contents ...string) string {
	now := time.Now()
	head := []string{bulk(did), bulk(fmt.Sprint(now.Unix())), bulk(fmt.Sprint(now.Nanosecond() / 1000)), number(before)}
	return array(append(head, contents...)...)
}

func literal(t testing.TB, text string) *cell.Limit {
	t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}
