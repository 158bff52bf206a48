package view

import (
	"strings"
	"testing"

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
		if v, ok := guesses(s, "k"); !ok || v.NowNS != max(seenAt, in2100) || v.keys[0].read.text != "7" || !v.cached {
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
