package remote

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
)

// askFor sends a write of a key, and waits for its outcome.
func (s *Store) askFor(key string, patience time.Duration) error {
	return s.outcome(&link.Request{Args: []string{"SET", "x"}, Keys: []string{key}, Deadline: time.Now().Add(patience)})
}

func (s *Store) outcome(r *link.Request) error {
	answered := make(chan error, 1)
	r.Done = func(_ rueidis.RedisMessage, err error) { answered <- err }
	s.link.Send(r)
	return <-answered
}

// patient is a deadline that only an engine misses that does not answer.
const patient = time.Minute

// byHand stops the clock of the Store's breakers. From now on the test moves it.
func (s *Store) byHand() *celldtest.Hands {
	all, _ := handsOf.Load(s)
	h := all.(*celldtest.Hands)
	h.Set(time.Unix(1_700_000_000, 0))
	return h
}

// handsOf are those of each Store of newTestStore.
var handsOf sync.Map

// Of package link.
const (
	nearby    = 300 * time.Microsecond
	mostLeft  = 32
	inFlight  = 4
	laneCount = 16
)

// byItself is a Store without a connection, whose timers a test moves.
func byItself(t *testing.T) (*Store, *celldtest.Hands) {
	t.Helper()
	h := &celldtest.Hands{}
	h.Set(time.Unix(1_700_000_000, 0))
	return newStore(Options{Policies: &policy.Set{}, Timeout: time.Second,
		link: func(by *link.Options) { by.Now, by.After = h.Now, h.After }}), h
}

// lines is a log that tests read while it is written.
type lines struct{ celldtest.LogBuffer }

func (l *lines) log() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// openStore opens a Store until the test ends.
func openStore(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

const atNS int64 = 1_700_000_000_000_000_000

func bucketOf(t testing.TB, maxBurst, count, period int64) cell.Bucket {
	t.Helper()
	b, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// alone is a Store without a connection, with what --store-failure says.
func alone(t testing.TB, failures string) *Store {
	t.Helper()
	f, err := ParseFailures(failures)
	if err != nil {
		t.Fatal(err)
	}
	return newStore(Options{Failures: f, Policies: &policy.Set{}})
}

// callsOf are pairs of a key and a limit, which is a literal or a policy of the Store.
func (s *Store) callsOf(t testing.TB, pairs ...string) (calls []store.Call) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		c := store.Call{Key: []byte(pairs[i])}
		if name, ok := strings.CutPrefix(pairs[i+1], "@"); ok {
			p := s.policies.Policy([]byte(name))
			c.Limit, c.Policy = &p.Limits[0].Limit, p.Limits[0]
		} else {
			l, err := cell.ParseLimit(pairs[i+1])
			if err != nil {
				t.Fatal(err)
			}
			c.Limit = &l
		}
		calls = append(calls, c)
	}
	return calls
}

func modesOf(failures string) Failures {
	m, err := ParseFailures(failures)
	if err != nil {
		panic(err)
	}
	return m
}
