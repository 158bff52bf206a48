package keyspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// put sets keys on the engine as another program would.
func put(t *testing.T, s *Store, names ...string) {
	t.Helper()
	client := s.Link.Client()
	for _, name := range names {
		if err := client.Do(t.Context(), client.B().Set().Key(name).Value("1").Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

func keysOf(t *testing.T, s *Store, pattern string) []string {
	t.Helper()
	keys := wait(t, func(done func([]string, error)) { s.Keys(t.Context(), pattern, 1<<20, done) })
	slices.Sort(keys)
	return keys
}

// wait returns what a method tells.
func wait[T any](t *testing.T, ask func(done func(T, error))) T {
	t.Helper()
	answers := make(chan T, 1)
	ask(func(answer T, err error) {
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	})
	return <-answers
}

// All keys are those of the prefix, which is no pattern, but those of celld itself; and others' keys stay.
func TestAllKeysAreThoseOfThePrefix(t *testing.T) {
	socket := linktest.StartRedis(t)
	const prefix = `a*[b]?\^:`
	s := newTestStore(t, socket, Options{Prefix: prefix})
	others := []string{"other", "ax[b]?\\^:k", "celld:policies", prefix + "celld:policies", prefix + "celld:rules",
		prefix + "k" + "\x00turns"}
	put(t, s, others...)
	for i := range 3000 {
		put(t, s, fmt.Sprint(prefix, "k", i))
	}
	if keys := keysOf(t, s, "*"); len(keys) != 3000 || !slices.Contains(keys, "k17") {
		t.Errorf("%d keys: %.100q", len(keys), keys)
	}
	if keys := keysOf(t, s, "k1?"); len(keys) != 10 {
		t.Errorf("%q", keys)
	}
	if n := wait(t, func(done func(int64, error)) { s.Size(t.Context(), done) }); n != 3000 {
		t.Errorf("%d keys are counted", n)
	}
	for range 20 {
		if key := wait(t, func(done func(string, error)) {
			s.RandomKey(t.Context(), func(key string, _ bool, err error) { done(key, err) })
		}); !strings.HasPrefix(key, "k") {
			t.Errorf("%q", key)
		}
	}

	seen := map[string]bool{}
	for o := (store.ScanOptions{Pattern: "k?*", Count: 100, Type: "string"}); ; {
		var keys []string
		o.Cursor = wait(t, func(done func(uint64, error)) {
			s.Scan(t.Context(), o, func(next uint64, found []string, err error) { keys = found; done(next, err) })
		})
		if len(keys) > 300 {
			t.Errorf("%d keys at once", len(keys))
		}
		for _, key := range keys {
			seen[key] = true
		}
		if o.Cursor == 0 {
			break
		}
	}
	if len(seen) != 3000 {
		t.Errorf("%d keys are scanned", len(seen))
	}
	s.Scan(t.Context(), store.ScanOptions{Pattern: "*", Count: 10, Cursor: 5 << cursorBits}, func(next uint64, keys []string, err error) {
		if next != 0 || len(keys) > 0 || err != nil {
			t.Errorf("a cursor of no master: %d, %q, %v", next, keys, err)
		}
	})

	wait(t, func(done func(struct{}, error)) { s.Flush(func(err error) { done(struct{}{}, err) }) })
	if keys := keysOf(t, s, "*"); len(keys) > 0 {
		t.Errorf("%d keys are left", len(keys))
	}
	client := s.Link.Client()
	if n, err := client.Do(t.Context(), client.B().Dbsize().Build()).AsInt64(); err != nil || n != int64(len(others)) {
		t.Errorf("%d keys of others are left: %v", n, err)
	}
}

// Few keys of a prefix are found among many others.
func TestARandomKeyAmongOthers(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	random := func() string {
		return wait(t, func(done func(string, error)) {
			s.RandomKey(t.Context(), func(key string, found bool, err error) { done(fmt.Sprint(key, found), err) })
		})
	}
	if got := random(); got != "false" {
		t.Errorf("%q of no key", got)
	}
	for i := range 5000 {
		put(t, s, fmt.Sprint("other", i))
	}
	if got := random(); got != "false" {
		t.Errorf("%q of others' keys", got)
	}
	put(t, s, "p:k")
	if got := random(); got != "ktrue" {
		t.Errorf("%q", got)
	}
}

// Without a prefix nothing is flushed, and all keys are counted.
func TestAllKeysWithoutAPrefix(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{})
	put(t, s, "celld:k", "celld:policies")
	s.Flush(func(err error) {
		if err != store.ErrNoPrefix {
			t.Error(err)
		}
	})
	if n := wait(t, func(done func(int64, error)) { s.Size(t.Context(), done) }); n != 2 {
		t.Errorf("%d keys", n)
	}
	if keys := keysOf(t, s, "*"); !slices.Equal(keys, []string{"celld:k"}) {
		t.Errorf("%q", keys)
	}
}

// Who asks for much does not hold up who asks for little, and who has gone is not worked for.
func TestTicketsOfAllKeys(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	for i := range 3000 {
		put(t, s, fmt.Sprint("p:", i))
	}
	long := atOnce * 2
	ended := make(chan struct{}, long)
	ctx, cancel := context.WithCancel(t.Context())
	for range long {
		go func() {
			for ctx.Err() == nil {
				if err := s.admitted(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
			ended <- struct{}{}
		}()
	}
	if n := wait(t, func(done func(int64, error)) { s.Size(t.Context(), done) }); n != 3000 {
		t.Errorf("%d keys", n)
	}
	cancel()
	for range long {
		<-ended
	}
	failed := make(chan error, 1)
	s.Keys(ctx, "*", 1<<20, func(_ []string, err error) { failed <- err })
	if err := <-failed; err == nil {
		t.Error("keys are told though who asked has gone")
	}
	found := wait(t, func(done func([]string, error)) { s.Keys(t.Context(), "*", 100, done) })
	if len(found) < 5 || len(found) > 2*walkStep {
		t.Errorf("%d keys, of which 5 are enough", len(found))
	}
	s = newStore(Options{})
	s.Size(t.Context(), func(_ int64, err error) { failed <- err })
	s.Scan(t.Context(), store.ScanOptions{Pattern: "*"}, func(_ uint64, _ []string, err error) { failed <- err })
	for range 2 {
		if err := <-failed; err != link.ErrNoConnection {
			t.Error(err)
		}
	}
}

// An engine that does not answer is not waited for longer than for other commands, and not at all once it is known.
func TestAllKeysOfAnEngineThatDoesNotAnswer(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.Hangs(t)
		s.Timeout = 50 * time.Millisecond // the connection itself gives up after 10 s
		ask := map[string]func(done chan<- error){
			"size":   func(done chan<- error) { s.Size(t.Context(), func(_ int64, err error) { done <- err }) },
			"random": func(done chan<- error) { s.RandomKey(t.Context(), func(_ string, _ bool, err error) { done <- err }) },
		}
		for _, known := range []bool{false, true} {
			most := s.Timeout
			if known {
				s.Link.Break("", &link.DownError{Cause: "known"})
				most = 0
			}
			for name, ask := range ask {
				done, began := make(chan error, 1), time.Now()
				ask(done)
				if err := <-done; !linktest.IsDown(err) || known != (err.Error() == "known") || time.Since(began) > most {
					t.Errorf("%s, known %v: %v after %v", name, known, err, time.Since(began))
				}
			}
		}
	})
}

// A flush tells which keys it removes, also where the engine does not say that they are gone.
func TestWhatAFlushTells(t *testing.T) {
	for reply, fails := range map[string]bool{":1\r\n": false, "-ERR odd\r\n": true} {
		inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			e.Does(map[string]string{"SCAN": page(0, "p:a", "o:b", "p:celld:policies"), "UNLINK": reply})
			ended := make(chan error, 1)
			s.Flush(func(err error) { ended <- err })
			if err := <-ended; (err != nil) != fails {
				t.Error(err)
			}
			if !slices.Equal(s.flushed, []string{"p:a"}) {
				t.Errorf("it tells that %q are flushed", s.flushed)
			}
			if want := []string{"UNLINK p:a"}; !slices.Equal(e.Commands()[1:], want) {
				t.Errorf("asked %q", e.Commands())
			}
		})
	}
}
