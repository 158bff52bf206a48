package remote

import (
	"testing"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
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
		e := celldtest.NewAiling(t)
		e.Does(map[string]string{"SET ": answer, "EVAL": "-ERR odd\r\n"})
		s := newTestStore(t, e.Socket, Options{Time: func() int64 { return in2100 }})
		s.newKeys.refused.Store(100)
		r := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}}
		s.throttleNow(r, store.Access{NowNS: in2100})
		st := s.Stats()
		if st.Scripts.Load() != c.scripts || s.newKeys.unknown.Load() != c.unknown || st.SetNewRefused.Load() != c.refused ||
			linktest.IsDown(r[0].Err) != c.down ||
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
	}{{0, 0, false}, {0, 16, true}, {64, 63, false}, {63, 63, false}, {1024, 1008, false}, {1024, 1024, true}, {640, 630, false},
		{640, 646, true}} {
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
