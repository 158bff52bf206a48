package view

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

// A commit asks the engine where something has changed, where others wait behind the view, and where it has guessed. It first reads what is
// missing, and then it is done again.
func TestWhatACommitAsks(t *testing.T) {
	take := func(t *testing.T, v *View, key string) {
		if _, err := v.Table().Take([]store.Call{takeCall(t, key, "5/1h")}, store.TakeOptions{Cost: 1},
			store.Access{NowNS: v.NowNS}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		do       func(t *testing.T, v *View)
		asks     *link.Script
		keys     string
		conflict bool
		err      error
		counts   int64
	}{
		{"nothing", func(*testing.T, *View) {}, nil, "", false, nil, 1},
		{"a change", func(t *testing.T, v *View) { take(t, v, "k") }, commitScript, "2 p:k p:k\x00turns ", false, nil, 1},
		{"nothing, as the first of a queue", func(_ *testing.T, v *View) { v.ticket.place = 1 }, commitScript, "2 p:k p:k\x00turns ", false, nil, 1},
		{"nothing, by a guess", func(_ *testing.T, v *View) { v.state = stateCached }, commitScript, "2 p:k p:k\x00turns ", false, nil, 1},
		{"what is not declared", func(t *testing.T, v *View) { take(t, v, "other") }, nil, "", false, ErrUndeclared, 1},
		{"a key is missing", func(_ *testing.T, v *View) { v.miss([]string{"p:k", "p:other"}) }, openScript, "2 p:k p:other", true, nil, 0},
		{"no key is missing", func(_ *testing.T, v *View) { v.miss([]string{"p:k"}) }, nil, "", false, nil, 1},
	} {
		inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			e.AnswersBy(func(command string) string {
				switch {
				case strings.Contains(command, commitScript.Digest):
					return linktest.ViewReply("stored", -1)
				case strings.Contains(command, " 2 "):
					return linktest.ViewReply("read", -1, nothing, nothing)
				}
				return linktest.ViewReply("read", -1, nothing)
			})
			woken := make(signal, 1)
			v := s.Open([][]byte{[]byte("k")}, woken)
			<-woken
			v.Table()
			c.do(t, v)
			asked, table := e.Count(), v.table
			if done := v.Commit(woken); done != (c.asks == nil) {
				t.Errorf("%s: it is done at once: %v", c.name, done)
			} else if !done {
				if v.table != nil {
					t.Errorf("%s: it keeps its table", c.name)
				}
				<-woken
			}
			if v.Err != c.err || v.Conflict() != c.conflict || len(v.missing) > 0 || s.counts.Changes.Load() != c.counts {
				t.Errorf("%s: %v, conflict %v, %q are missing, %d are counted", c.name, v.Err, v.Conflict(), v.missing,
					s.counts.Changes.Load())
			}
			if got := e.Commands()[asked:]; c.asks == nil && len(got) > 0 || c.asks != nil &&
				(len(got) != 1 || !strings.Contains(got[0], c.asks.Digest+" "+c.keys)) {
				t.Errorf("%s: asked %q", c.name, got)
			}
			v.ticket.place = 0
			v.Close()
			if n := table.Len(v.NowNS); n != 0 || table.first != 0 || table.last != 0 || v.table != nil {
				t.Errorf("%s: %d keys stay in the table", c.name, n)
			}
		})
	}
}

// The time that a handler takes is none of the engine's, and a view that is closed first leaves the list it stands in.
func TestTheEndOfAView(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.AnswersBy(func(string) string { return linktest.ViewReply("read", -1, nothing) })
		woken := make(signal, 1)
		for _, place := range []int64{0, 1} {
			v := s.Open([][]byte{[]byte("k"), []byte("k")}, woken)
			<-woken
			deadline := v.deadline
			celldtest.Pass(time.Hour)
			if !v.Commit(woken) || v.Err != nil || v.deadline.Sub(deadline) != time.Hour {
				t.Errorf("%v, its deadline is later by %v", v.Err, v.deadline.Sub(deadline))
			}
			v.ticket.place, v.ticket.list, v.ticket.name = place, "queue", "name"
			v.Close()
			synctest.Wait()
			if leaves := e.Commands()[len(e.Commands())-1] == "LREM queue 1 name"; leaves != (place > 0) || v.ticket.place > 0 {
				t.Errorf("place %d in the queue, it leaves: %v", place, leaves)
			}
		}
	})
}

// A table that is given up has nothing of the view, of its keys nor of others that were made in it.
func TestATableThatIsGivenUp(t *testing.T) {
	s := newStore(Options{})
	for _, keys := range [][]string{nil, {"a"}, {"a", "other"}} {
		v := s.viewOf(atNS, []string{"a", "b"})
		v.giveUp()
		v.Table()
		for _, key := range keys {
			terms := &store.Terms{}
			if _, err := v.Take([]store.Call{takeCall(t, key, "5/1h,algo=conc")}, store.TakeOptions{Cost: 1, Terms: terms},
				store.Access{NowNS: atNS}); err != nil || terms.Lease == 0 {
				t.Fatal(err, terms)
			}
		}
		table := v.table
		if (table.first != 0) != (keys != nil) || v.Table() != table.Store {
			t.Errorf("the table has given IDs from %d on", table.first)
		}
		if v.giveUp(); v.table != nil || table.Len(atNS) != 0 || table.first != 0 || table.last != 0 {
			t.Errorf("%q: it has %d keys, IDs from %d to %d", keys, table.Len(atNS), table.first, table.last)
		}
	}
}

// What keys are for a request: in a Cluster those of one hash slot, and none that is foreign.
func TestKeysOfARequest(t *testing.T) {
	s := newStore(Options{})
	for _, cluster := range []bool{false, true} {
		if cluster {
			linktest.InCluster(s.Link)
		}
		for names, together := range map[string]bool{"a": true, "a a": true, "{x}a {x}b": true, "a b": false, "{x}a {x}b c": false,
			"c {x}a {x}b": false} {
			err := s.Link.CheckHashSlot(strings.Fields(names))
			if err != nil && err != link.ErrCrossSlot || (err == nil) != (together || !cluster) {
				t.Errorf("%s: %v", names, err)
			}
		}
	}
	asked := false
	v := s.newView(s.deadline())
	v.addAll([]string{"a", "b"})
	if v.open(func() { asked = true }); !asked || v.Err != link.ErrCrossSlot {
		t.Errorf("it ends: %v, %v", asked, v.Err)
	}
	v = s.viewOf(atNS, []string{"foreign", "ours"}, content{kind: "list", foreign: true}, content{kind: kindNone})
	for names, foreign := range map[string]bool{"": false, "ours": false, "none": false, "foreign": true, "ours foreign": true,
		"none ours": false} {
		if is := v.foreignAmong(strings.Fields(names)); is != foreign {
			t.Errorf("%q: one is foreign: %v", names, is)
		}
	}
	v.miss([]string{"ours", "a", "foreign", "b"})
	if !slices.Equal(v.missing, []string{"a", "b"}) {
		t.Errorf("%q are missing", v.missing)
	}
}
