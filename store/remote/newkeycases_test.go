package remote

import (
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/integration_test/harness"
	"celld/store"
	"celld/store/policy"
)

// A new key that the engine does not decide on as one is decided by the script, or fails.
func TestAnswersToNewKeys(t *testing.T) {
	for answer, c := range map[string]struct {
		scripts int64
		unknown bool
		refused int64
		down    bool
	}{
		"-ERR syntax error\r\n":           {1, true, 0, false},
		"-WRONGTYPE Operation\r\n":        {1, false, 0, false},
		"$1\r\n7\r\n":                     {1, false, 1, false},
		"-READONLY You can't write\r\n":   {0, false, 0, true},
		"_\r\n":                           {0, false, 0, false},
		"-ERR odd\r\n":                    {0, false, 0, false},
		"-LOADING Redis is loading\r\n":   {0, false, 0, true},
		"-NOREPLICAS Not enough good\r\n": {0, false, 0, true},
	} {
		e := harness.NewAiling(t)
		e.Does(map[string]string{"SET ": answer, "EVAL": "-ERR odd\r\n"})
		s := newTestStore(t, e.Socket, Options{Time: func() int64 { return in2100 }})
		s.newKeys.refused.Store(100)
		r := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}}
		s.throttleNow(r, store.Access{NowNS: in2100})
		if st := s.Stats(); st.Scripts.Load() != c.scripts || s.newKeys.unknown.Load() != c.unknown || st.SetNewRefused.Load() != c.refused || isDown(r[0].Err) != c.down ||
			(r[0].Err == nil) != (answer == "_\r\n") || st.SetNew.Load() != 1 {
			t.Errorf("%q: %d scripts, unknown %v, %v", answer, st.Scripts.Load(), s.newKeys.unknown.Load(), r[0].Err)
		}
		want := int32(100)
		switch answer {
		case "_\r\n":
			want = 99
		case "$1\r\n7\r\n":
			want = 100 + (1024-100+63)/64
		}
		if got := s.newKeys.refused.Load(); got != want {
			t.Errorf("%q: the share is %d, want %d", answer, got, want)
		}
	}
}

// Keys are tried while less than 80 % are in use, and above that one in 16.
func TestWhenTryingPays(t *testing.T) {
	var n setNewState
	for i, c := range []struct {
		was, is int32
		refused bool
	}{{0, 0, false}, {0, 16, true}, {64, 63, false}, {63, 63, false}, {1024, 1008, false}, {1024, 1024, true}, {640, 630, false}, {640, 646, true}} {
		n.refused.Store(c.was)
		if n.note(c.refused); n.refused.Load() != c.is {
			t.Errorf("%d: %d becomes %d, want %d", i, c.was, n.refused.Load(), c.is)
		}
	}
	for share, want := range map[int32]int{mostRefused - 1: 4 * tryOneIn, mostRefused: 4, 1024: 4} {
		n.refused.Store(share)
		tries := 0
		for range 4 * tryOneIn {
			if n.pays() {
				tries++
			}
		}
		if tries != want {
			t.Errorf("%d of 1024: %d tries", share, tries)
		}
	}
	n.refused.Store(0)
	if n.unknown.Store(true); n.pays() {
		t.Error("an engine is tried that does not have it")
	}
}

// What a key held is remembered up to a size, and not used for a while where it was wrong.
func TestWhatIsSeen(t *testing.T) {
	var s seen
	s.init()
	text := func(n int) content { return content{kind: kindString, text: strings.Repeat("1", n)} }
	hash := content{kind: kindHash, fields: []field{{strings.Repeat("a", 500), strings.Repeat("b", 523)}}}
	for i, c := range []struct {
		c     content
		known bool
	}{
		{text(mostSeen - 1), true}, {text(mostSeen), false}, {hash, true}, {content{kind: kindHash, fields: append(hash.fields, field{"a", ""})}, false},
		{text(1), true}, {content{kind: "list", foreign: true}, false},
	} {
		s.note("k", c.c, 7, notGuessed)
		if is, known := s.of("k"); known != c.known || known && (is.nowNS != 7 || is.kind != c.c.kind) {
			t.Errorf("%d: %v", i, known)
		}
	}
	for wrong, unused := range []int{1, 2, 4, 8, 16, 32, mostUnused, mostUnused} {
		if s.note("k", text(1), 7, guessedWrong); s.keys.Len() != 1 {
			t.Fatal("it is not there")
		}
		if last, _ := s.keys.Get("k"); last.wrong != wrong+1 || last.unused != unused {
			t.Errorf("wrong %d times: %d are to read it", last.wrong, last.unused)
		}
	}
	for left := mostUnused - 1; left >= 0; left-- {
		s.note("k", text(1), 7, notGuessed)
		if _, known := s.of("k"); known != (left == 0) {
			t.Errorf("%d are to read it, and it is used: %v", left, known)
		}
	}
	if s.note("k", text(1), 7, guessedRight); s.keys.Len() != 1 {
		t.Error("it is forgotten")
	}
	if last, known := s.of("k"); !known || last.wrong != 0 {
		t.Errorf("right again: %+v, %v", last, known)
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
		s.seen.note("k", content{kind: kindString, text: "7"}, seenAt, notGuessed)
		if v, ok := guesses(s, "k"); !ok || v.NowNS != max(seenAt, in2100) || v.keys[0].read.text != "7" || v.guessed != guessed {
			t.Errorf("%v, %+v", ok, v)
		}
	}
	if _, ok := guesses(s, "k", "o"); ok {
		t.Error("two keys")
	}
	s = newStore(Options{Policies: &policy.Set{}})
	s.seen.note("k", content{kind: kindString, text: "7"}, in2100, notGuessed)
	if _, ok := guesses(s, "k"); ok {
		t.Error("the engine's time is not known")
	}
}

func TestKnownTATs(t *testing.T) {
	var k known
	k.init(2)
	k.note("k", "", cell.Params{}, 7, time.Now(), false)
	k.note("f", "field", cell.Params{}, 7, time.Now(), false)
	if k.tat("k") != 7 || k.tat("f") != 0 || k.tat("o") != 0 {
		t.Errorf("%d, %d, %d", k.tat("k"), k.tat("f"), k.tat("o"))
	}
	for now, inUse := range map[int64]bool{6 + int64(linger): true, 7 + int64(linger): false} {
		if k.inUse("k", now) != inUse || k.inUse("o", now) {
			t.Errorf("in use at %d: %v", now, !inUse)
		}
	}
}
