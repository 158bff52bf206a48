package view

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/store"
	"celld/store/policy"
)

// What a key held is remembered up to a size.
func TestContentsAreRemembered(t *testing.T) {
	s := newStore(Options{})
	text := func(n int) content { return content{kind: kindString, text: strings.Repeat("1", n)} }
	hash := content{kind: kindHash, fields: []field{{strings.Repeat("a", 500), strings.Repeat("b", 523)}}}
	for i, c := range []struct {
		c     content
		known bool
	}{
		{text(mostContent - 1), true}, {text(mostContent), false}, {hash, true},
		{content{kind: kindHash, fields: append(hash.fields, field{"a", ""})}, false}, {text(1), true},
		{content{kind: "list", foreign: true}, false},
	} {
		s.viewOf(7, []string{"k"}, c.c).cache()
		if is, known := s.cache.Get("k"); known != c.known || known && (is.nowNS != 7 || is.kind != c.c.kind) {
			t.Errorf("%d: %v", i, is)
		}
	}
	s.viewOf(7, []string{"a"}, text(1)).cache()
	s.viewOf(7, []string{"b"}, text(1)).cache()
	s.viewOf(7, []string{"c", "d"}, text(1), text(1)).cache()
	if s.Forget([]string{"a", "x"}); s.cache.Contains("a") || s.cache.Len() != 1 {
		t.Errorf("%d are known", s.cache.Len())
	}
}

// A view of one key is loaded by what it held, at a time that is not before.
func TestWhenAViewIsLoadedFromTheCache(t *testing.T) {
	now := in2100
	guesses := func(s *Store, keys ...string) (*View, bool) {
		v := s.newView(s.deadline())
		v.addAll(keys)
		return v, v.loadCached()
	}
	s := newStore(Options{Policies: &policy.Set{}, Time: func() int64 { return now }})
	if _, ok := guesses(s, "k"); ok {
		t.Error("nothing is known")
	}
	for _, seenAt := range []int64{in2100 - 5, in2100 + 5} {
		s.viewOf(seenAt, []string{"k"}, content{kind: kindString, text: "7"}).cache()
		if v, ok := guesses(s, "k"); !ok || v.NowNS != max(seenAt, in2100) || v.keys[0].read.text != "7" || v.state != stateCached {
			t.Errorf("%v, %+v", ok, v)
		}
	}
	if _, ok := guesses(s, "k", "o"); ok {
		t.Error("two keys")
	}
	s = newStore(Options{Policies: &policy.Set{}})
	s.viewOf(in2100, []string{"k"}, content{kind: kindString, text: "7"}).cache()
	if _, ok := guesses(s, "k"); ok {
		t.Error("the engine's time is not known")
	}
}

// BenchmarkRead is what a command that only reads a key takes, beside the engine: with a table that another view has given up, and with a
// new one.
func BenchmarkRead(b *testing.B) {
	s := newStore(Options{})
	for _, anew := range []bool{false, true} {
		b.Run(fmt.Sprint("anew=", anew), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if anew {
					s.tables = sync.Pool{}
				}
				v := s.newView(time.Time{})
				v.NowNS = atNS
				v.add("k")
				v.keys[0].read = content{kind: kindString, text: "1700000001000000000", expiry: atNS/1e6 + 1000}
				if _, found := v.Table().Get([]byte("k"), store.Access{NowNS: atNS}); !found || !v.commit(nil) || v.Err != nil {
					b.Fatal(v.Err)
				}
				v.Close()
			}
		})
	}
}
