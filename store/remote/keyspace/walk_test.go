package keyspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
)

// manyNodes is a client of several engines, as a Cluster's is.
type manyNodes struct {
	rueidis.Client
	all map[string]rueidis.Client
}

func (n manyNodes) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

func (n manyNodes) Nodes() map[string]rueidis.Client { return n.all }

// aCluster is a Store on a Cluster of ailing engines, by their addresses. Each knows its role.
func aCluster(t *testing.T, o Options, addresses ...string) (*Store, map[string]*celldtest.Ailing) {
	t.Helper()
	engines, all := map[string]*celldtest.Ailing{}, map[string]rueidis.Client{}
	var s *Store
	for _, address := range addresses {
		engines[address] = celldtest.NewAiling(t)
		s = newTestStore(t, engines[address].Socket, o)
		all[address] = s.Link.Client()
	}
	s.Link.Use(manyNodes{s.Link.Client(), all})
	return s, engines
}

const master, replica = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", "*3\r\n$5\r\nslave\r\n:0\r\n*0\r\n"

func page(cursor uint64, keys ...string) string {
	text := fmt.Sprintf("*2\r\n$%d\r\n%d\r\n*%d\r\n", len(fmt.Sprint(cursor)), cursor, len(keys))
	for _, key := range keys {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(key), key)
	}
	return text
}

const persists = ":-1\r\n" // of PTTL

// The masters of a Cluster are in the order of their addresses. One that does not answer is an error; a replica that does not is left out.
func TestMastersOfACluster(t *testing.T) {
	addresses := []string{"h:1", "h:2", "h:3", "h:4", "h:5"}
	s, engines := aCluster(t, Options{}, addresses...)
	all := s.Link.Client().Nodes()
	roles := func(is map[string]string) ([]rueidis.Client, error) {
		t.Helper()
		for address, e := range engines {
			e.Answers(master)
			if text := is[address]; text != "" {
				e.Answers(text)
			}
		}
		return s.masters(t.Context())
	}
	const silent = "-LOADING Redis is loading the dataset in memory\r\n"
	for _, c := range []struct {
		roles map[string]string
		want  string // the masters' ports; "": an error
	}{
		{map[string]string{"h:2": silent}, ""},
		{nil, "1 2 3 4 5"},
		{map[string]string{"h:2": replica, "h:5": replica}, "1 3 4"},
		{map[string]string{"h:2": silent, "h:5": silent}, "1 3 4"},
		{map[string]string{"h:2": silent, "h:1": silent}, ""},
		{map[string]string{"h:2": silent}, "1 3 4 5"},
		{map[string]string{"h:5": silent}, ""},
	} {
		masters, err := roles(c.roles)
		var want []rueidis.Client
		for _, port := range strings.Fields(c.want) {
			want = append(want, all["h:"+port])
		}
		if !slices.Equal(masters, want) || (err == nil) != (c.want != "") {
			t.Errorf("%q: %d masters, %v; want %q", c.roles, len(masters), err, c.want)
		}
		if down := (*link.DownError)(nil); err != nil && (!errors.As(err, &down) || down.Sent) {
			t.Errorf("%q: %#v", c.roles, err)
		}
	}
}

// scan is what Scan tells.
func (s *Store) scan(t *testing.T, o store.ScanOptions) (next uint64, keys []string, err error) {
	t.Helper()
	done := make(chan struct{})
	s.Scan(t.Context(), o, func(n uint64, k []string, e error) {
		next, keys, err = n, k, e
		close(done)
	})
	<-done
	return next, keys, err
}

// A walk goes over all masters, one after the other, and its cursor tells where it is.
func TestAWalkOverACluster(t *testing.T) {
	s, engines := aCluster(t, Options{}, "h:1", "h:2")
	engines["h:1"].Does(map[string]string{"ROLE": master, "PTTL": persists, "SCAN 0 ": page(5, "a"), "SCAN 5 ": page(0, "b")})
	engines["h:2"].Does(map[string]string{
		"ROLE": master, "PTTL": persists, "SCAN 0 ": page(cursorMask, "c"), fmt.Sprint("SCAN ", uint64(cursorMask)): page(0, "d"),
	})
	const second = 1 << cursorBits
	for _, c := range []struct {
		cursor, next uint64
		keys         string
	}{{0, 5, "a"}, {5, second, "b"}, {second, second + cursorMask, "c"}, {second + cursorMask, 0, "d"}, {2 * second, 0, ""}} {
		next, keys, err := s.scan(t, store.ScanOptions{Cursor: c.cursor, Pattern: "*", Count: 10})
		if next != c.next || strings.Join(keys, " ") != c.keys || err != nil {
			t.Errorf("%d: %d, %q, %v", c.cursor, next, keys, err)
		}
	}
	if keys := keysOf(t, s, "*"); !slices.Equal(keys, []string{"a", "b", "c", "d"}) {
		t.Errorf("%q", keys)
	}
	for most, want := range map[int]int{0: 1, 16: 1, 17: 2, 33: 2, 34: 3, 1 << 20: 4} { // a key takes 17 bytes, and one is told at least
		if keys := wait(t, func(done func([]string, error)) { s.Keys(t.Context(), "*", most, done) }); len(keys) != want {
			t.Errorf("%d keys of %d bytes at most, want %d", len(keys), most, want)
		}
	}
	engines["h:2"].Does(map[string]string{"ROLE": master, "SCAN": page(cursorMask + 1)})
	if next, _, err := s.scan(t, store.ScanOptions{Cursor: second}); next != 0 || err != errCursor {
		t.Errorf("a cursor that does not fit: %d, %v", next, err)
	}
	engines["h:2"].Does(map[string]string{"ROLE": master, "SCAN": "-ERR unknown type name 'x'\r\n"})
	if next, keys, err := s.scan(t, store.ScanOptions{Cursor: second, Type: "x"}); next != 0 || len(keys) > 0 || err != nil {
		t.Errorf("an unknown type: %d, %q, %v", next, keys, err)
	}
	for answer, want := range map[string]string{"-ERR odd\r\n": "ERR odd", "-OOM command not allowed\r\n": store.ErrFull.Error(),
		"close": "the connection to the engine was lost"} {
		engines["h:2"].Does(map[string]string{"ROLE": master, "SCAN": answer})
		next, _, err := s.scan(t, store.ScanOptions{Cursor: second})
		if down := (*link.DownError)(nil); next != 0 || err == nil || err.Error() != want || errors.As(err, &down) && down.Sent {
			t.Errorf("%q: %d, %#v", answer, next, err)
		}
	}
}

// An error of the engine ends what is asked about all keys, and is told.
func TestErrorsOfAllKeys(t *testing.T) {
	for name, c := range map[string]struct {
		prefix  string
		answers map[string]string
		ask     func(s *Store, done func(error))
	}{
		"flush": {"p:", map[string]string{"SCAN": page(0, "p:a"), "UNLINK": "-ERR odd\r\n"}, func(s *Store, done func(error)) { s.Flush(done) }},
		"size": {"", map[string]string{"DBSIZE": "-ERR odd\r\n"}, func(s *Store,
			done func(error)) {
			s.Size(t.Context(), func(_ int64, err error) { done(err) })
		}},
		"size p": {"p:", map[string]string{"SCAN": "-ERR odd\r\n"}, func(s *Store,
			done func(error)) {
			s.Size(t.Context(), func(_ int64, err error) { done(err) })
		}},
		"random": {"", map[string]string{"RANDOMKEY": "-ERR odd\r\n"}, func(s *Store, done func(error)) {
			s.RandomKey(t.Context(), func(_ string, _ bool, err error) { done(err) })
		}},
		"keys": {"", map[string]string{"SCAN": "-ERR odd\r\n"}, func(s *Store, done func(error)) {
			s.Keys(t.Context(), "*", 1, func(_ []string, err error) { done(err) })
		}},
	} {
		e := celldtest.NewAiling(t)
		e.Does(c.answers)
		s := newTestStore(t, e.Socket, Options{Prefix: c.prefix})
		failed := make(chan error, 1)
		c.ask(s, func(err error) { failed <- err })
		if err := <-failed; err == nil || err.Error() != "ERR odd" {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.asked.Load(); n != 0 {
			t.Errorf("%s: %d are asked", name, n)
		}
		celldtest.Eventually(t, "the client holds none", func() bool { return s.asking.Load() == 0 })
		s.asked.Store(mostAsked)
		c.ask(s, func(err error) { failed <- err })
		if err := <-failed; err != link.ErrBusy || s.asked.Load() != mostAsked {
			t.Errorf("%s: %v, where too much is asked", name, err)
		}
		s.asked.Store(mostAsked - 1)
		c.ask(s, func(err error) { failed <- err })
		if err := <-failed; err == nil || err.Error() != "ERR odd" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing is told of celld's own keys, nor of others' where there is a prefix.
func TestWhichKeysAreShown(t *testing.T) {
	s := newStore(Options{Prefix: "p:"})
	for name, want := range map[string]string{
		"p:k": "k", "p:": "", "p:celld:policiesx": "celld:policiesx", "p:celld:ids:": "celld:ids:", "p:celld:ids:x": "celld:ids:x",
		"k": "-", "P:k": "-", "p:celld:policies": "-", "p:celld:ids": "-", "p:celld:ids:{1}": "-", "p:k" + "\x00turns": "-",
	} {
		if key, shown := s.shown(name); shown != (want != "-") || shown && key != want {
			t.Errorf("%q: %q, %v", name, key, shown)
		}
	}
	if got := escapePattern(`a*?[]^\z`); got != `a\*\?\[\]\^\\z` {
		t.Error(got)
	}
}
