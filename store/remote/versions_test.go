package remote

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store/policy"
)

// A denial is remembered for a second from the time of asking, for the same limit, and until something else is known of the key. What
// others give back counts after that time.
func TestDenialsAreRememberedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k versions
		k.init(4)
		params := cell.Params{Count: 5}
		k.noteTAT("k", "f", params, 7, time.Now(), true)
		k.noteTAT("passed", "f", params, 7, time.Now(), false)
		denied := func(key, field string, p cell.Params) bool {
			tat, ok := k.denied(key, field, p)
			return ok && tat == 7
		}
		time.Sleep(time.Second - 1)
		if !denied("k", "f", params) {
			t.Error("it is forgotten before a second is over")
		}
		if denied("k", "other", params) || denied("k", "f", cell.Params{Count: 6}) || denied("other", "f", params) || denied("passed", "f", params) {
			t.Error("it is taken for another's")
		}
		time.Sleep(time.Nanosecond)
		if denied("k", "f", params) {
			t.Error("it is remembered for longer than a second")
		}
		k.noteTAT("k", "f", params, 7, time.Now(), true)
		if k.noteTAT("k", "f", params, 0, time.Now(), true); denied("k", "f", params) {
			t.Error("it is remembered where nothing is taken any more")
		}
		k.noteTAT("k", "f", params, 7, time.Now(), true)
		if k.forget("k"); denied("k", "f", params) {
			t.Error("it is remembered though it is to be forgotten")
		}
	})
}

// What a key held is remembered up to a size, and not used for a while where it was wrong.
func TestContentsAreRemembered(t *testing.T) {
	var s versions
	s.init(4)
	text := func(n int) content { return content{kind: kindString, text: strings.Repeat("1", n)} }
	hash := content{kind: kindHash, fields: []field{{strings.Repeat("a", 500), strings.Repeat("b", 523)}}}
	for i, c := range []struct {
		c     content
		known bool
	}{
		{text(mostContent - 1), true}, {text(mostContent), false}, {hash, true}, {content{kind: kindHash, fields: append(hash.fields, field{"a", ""})}, false},
		{text(1), true}, {content{kind: "list", foreign: true}, false},
	} {
		s.noteContent("k", c.c, 7, notGuessed)
		if is := s.stored("k"); (is != nil) != c.known || is != nil && (is.nowNS != 7 || is.kind != c.c.kind) {
			t.Errorf("%d: %v", i, is)
		}
	}
	for wrong, unused := range []int{1, 2, 4, 8, 16, 32, mostUnused, mostUnused} {
		if s.noteContent("k", text(1), 7, guessedWrong); s.keys.Len() != 1 {
			t.Fatal("it is not there")
		}
		if v, _ := s.keys.Get("k"); v.stored.wrong != wrong+1 || v.stored.unused != unused {
			t.Errorf("wrong %d times: %d are to read it", v.stored.wrong, v.stored.unused)
		}
	}
	for left := mostUnused - 1; left >= 0; left-- {
		s.noteContent("k", text(1), 7, notGuessed)
		if known := s.stored("k") != nil; known != (left == 0) {
			t.Errorf("%d are to read it, and it is used: %v", left, known)
		}
	}
	if s.noteContent("k", text(1), 7, guessedRight); s.keys.Len() != 1 {
		t.Error("it is forgotten")
	}
	if last := s.stored("k"); last == nil || last.wrong != 0 {
		t.Errorf("right again: %+v", last)
	}
}

// A view of one key is loaded by what it held, at a time that is not before.
func TestWhenAViewGuesses(t *testing.T) {
	now := in2100
	guesses := func(s *Store, keys ...string) (*View, bool) {
		v := s.newView(s.deadline())
		v.addAll(keys)
		return v, v.guess()
	}
	s := newStore(Options{Policies: &policy.Set{}, Time: func() int64 { return now }})
	if _, ok := guesses(s, "k"); ok {
		t.Error("nothing is known")
	}
	for _, seenAt := range []int64{in2100 - 5, in2100 + 5} {
		s.queues.shardOf("k").versions.noteContent("k", content{kind: kindString, text: "7"}, seenAt, notGuessed)
		if v, ok := guesses(s, "k"); !ok || v.NowNS != max(seenAt, in2100) || v.keys[0].read.text != "7" || v.guessed != guessed {
			t.Errorf("%v, %+v", ok, v)
		}
	}
	if _, ok := guesses(s, "k", "o"); ok {
		t.Error("two keys")
	}
	s = newStore(Options{Policies: &policy.Set{}})
	s.queues.shardOf("k").versions.noteContent("k", content{kind: kindString, text: "7"}, in2100, notGuessed)
	if _, ok := guesses(s, "k"); ok {
		t.Error("the engine's time is not known")
	}
}

func TestKnownTATs(t *testing.T) {
	var k versions
	k.init(2)
	k.noteTAT("k", "", cell.Params{}, 7, time.Now(), false)
	k.noteTAT("f", "field", cell.Params{}, 7, time.Now(), false)
	if k.tat("k") != 7 || k.tat("f") != 0 || k.tat("o") != 0 {
		t.Errorf("%d, %d, %d", k.tat("k"), k.tat("f"), k.tat("o"))
	}
	for now, inUse := range map[int64]bool{6 + int64(linger): true, 7 + int64(linger): false} {
		if k.inUse("k", now) != inUse || k.inUse("o", now) {
			t.Errorf("in use at %d: %v", now, !inUse)
		}
	}
}

// Contents take so many bytes at most: those that were used least go first. A TAT in a content's place takes none.
func TestBytesOfContents(t *testing.T) {
	var s versions
	s.init(1 << 20)
	c := content{kind: kindString, text: strings.Repeat("1", 1000)}
	const most = mostContents / queueShards / 1000
	for i := range 2 * most {
		s.noteContent(strconv.Itoa(i), c, 7, notGuessed)
	}
	if s.bytes != most*1000 || s.keys.Len() != most || s.stored("0") != nil || s.stored(strconv.Itoa(2*most-1)) == nil {
		t.Errorf("%d bytes of %d keys", s.bytes, s.keys.Len())
	}
	last := strconv.Itoa(2*most - 1)
	s.noteContent(last, c, 8, notGuessed)
	if s.bytes != most*1000 {
		t.Errorf("%d bytes after the same key", s.bytes)
	}
	if s.noteTAT(last, "", cell.Params{}, 7, time.Now(), false); s.bytes != (most-1)*1000 || s.stored(last) != nil || s.tat(last) != 7 {
		t.Errorf("%d bytes after a TAT", s.bytes)
	}
	if s.forgetTAT(last); s.tat(last) != 0 {
		t.Error("the TAT is there")
	}
	other := strconv.Itoa(2*most - 2)
	if s.forgetTAT(other); s.stored(other) == nil {
		t.Error("a content is forgotten")
	}
	if s.forget(other); s.stored(other) != nil || s.bytes != (most-2)*1000 {
		t.Errorf("%d bytes after a key was forgotten", s.bytes)
	}
}
