package view

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
)

const movingReply = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"

var nothing = celldtest.ArrayOf(celldtest.BulkOf(kindNone))

// opened is a view of keys that has been read.
func (s *Store) opened(keys ...string) *View {
	v := s.newView(s.deadline())
	v.addAll(keys)
	done := make(chan struct{})
	v.open(func() { close(done) })
	<-done
	return v
}

// A view takes an answer as its scripts give it, and none of another form.
func TestAnswersOfAView(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		at := func(parts ...string) string {
			return celldtest.ArrayOf(append([]string{celldtest.BulkOf("read")}, parts...)...)
		}
		sec, us, first := celldtest.BulkOf("1700000000"), celldtest.BulkOf("250001"), celldtest.IntOf(-1)
		for _, c := range []struct {
			reply string
			want  string // of what the keys a and b hold; "": an error
		}{
			{at(sec, us, first, nothing, nothing), "none  [] -1; none  [] -1"},
			{at(sec, us, first, nothing, celldtest.ArrayOf(celldtest.BulkOf("string"), celldtest.IntOf(7), celldtest.BulkOf("5"))), "none  [] -1; string 5 [] 7"},
			{at(sec, us, first, celldtest.ArrayOf(celldtest.BulkOf("hash"), celldtest.IntOf(-1), celldtest.BulkOf("f"), celldtest.BulkOf("g"), celldtest.BulkOf("h"), celldtest.BulkOf("i")), nothing), "hash  [{f g} {h i}] -1; none  [] -1"},
			{at(sec, us, first, celldtest.ArrayOf(celldtest.BulkOf("list"), celldtest.IntOf(-2)), celldtest.ArrayOf(celldtest.BulkOf("hash"), celldtest.IntOf(0))), "list  [] -1; hash  [] 0"},
			{celldtest.IntOf(1), ""},
			{at(sec, us), ""},
			{at(sec, us, first), ""},
			{at(sec, us, first, nothing), ""},
			{at(sec, us, first, nothing, nothing, nothing), ""},
			{celldtest.ArrayOf(nothing, sec, us, first, nothing, nothing), ""},
			{at(nothing, us, first, nothing, nothing), ""},
			{at(sec, nothing, first, nothing, nothing), ""},
			{at(celldtest.BulkOf("x"), us, first, nothing, nothing), ""},
			{at(sec, celldtest.BulkOf("x"), first, nothing, nothing), ""},
			{at(sec, us, nothing, nothing, nothing), ""},
			{at(sec, us, first, nothing, celldtest.IntOf(1)), ""},
			{at(sec, us, first, nothing, celldtest.ArrayOf(nothing)), ""},
			{at(sec, us, first, nothing, celldtest.ArrayOf(celldtest.BulkOf("string"), nothing, celldtest.BulkOf("5"))), ""},
			{at(sec, us, first, nothing, celldtest.ArrayOf(celldtest.BulkOf("string"), celldtest.IntOf(7), nothing)), ""},
		} {
			e.Answers(c.reply)
			s.Link.Clock("k").Forget()
			v := s.opened("a", "b")
			got := ""
			if v.Err == nil {
				show := func(k *viewKey) string {
					return fmt.Sprint(k.read.kind, " ", k.read.text, " ", k.read.fields, " ", k.read.expiry)
				}
				got = show(&v.keys[0]) + "; " + show(&v.keys[1])
			}
			if got != c.want {
				t.Errorf("%q: %s, %v", c.reply, got, v.Err)
			}
			if c.want != "" {
				if ns, ok := s.Link.Clock("k").Lower(); !ok || ns != 1_700_000_000_250_001_000 || v.NowNS != ns || v.ticket.place > 0 {
					t.Errorf("%q: %d, %v, place %d", c.reply, ns, ok, v.ticket.place)
				}
			}
		}
	})
}

// waits lets an engine answer after 4 ms each: so many times that a view has to wait, and then what it has read.
func waits(e *celldtest.Ailing, times int) {
	e.Takes(4 * time.Millisecond)
	e.AnswersBy(func(string) string {
		if times--; times >= 0 {
			return linktest.ViewReply("wait", 2)
		}
		return linktest.ViewReply("read", -1, nothing)
	})
}

// A view that has to wait for its ticket looks again after a part of a round trip, and not after its deadline.
func TestAViewThatWaitsForItsTicket(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		for _, how := range []*link.Script{openScript, commitScript} {
			began := time.Now()
			waits(e, 3)
			v := s.newView(time.Now().Add(time.Second))
			v.add("k")
			done := make(chan struct{})
			v.send(how, []string{"", "", kindNone, "0"}, func() { close(done) })
			<-done
			// 4 requests, and 3 pauses of two quarters of one
			if took := time.Since(began); v.Err != nil || v.ticket.place > 0 ||
				took != 4*4*time.Millisecond+3*2*time.Millisecond {
				t.Errorf("%v, place %d, after %v", v.Err, v.ticket.place, took)
			}
			if (v.state == stateConflict) != (how == commitScript) {
				t.Errorf("what it stored by is void: %v", v.state == stateConflict)
			}
			v = s.newView(time.Now().Add(5 * time.Millisecond))
			v.add("k")
			v.ticket.early = true
			done = make(chan struct{})
			e.Answers(linktest.ViewReply("wait", 100))
			began = time.Now()
			v.send(how, []string{"", "", kindNone, "0"}, func() { close(done) })
			<-done
			if took := time.Since(began); v.Err != link.ErrLate || took != 5*time.Millisecond || v.ticket.place != 101 {
				t.Errorf("%v after %v", v.Err, took)
			}
		}
	})
}

// However often a view looks whether it is its turn, the calls of its end are not nested.
func TestLooksAreNotNested(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		for _, how := range []*link.Script{openScript, commitScript} {
			var depths []int
			for _, looks := range []int{2, 20} {
				waits(e, looks)
				v := s.newView(time.Now().Add(time.Second))
				v.add("k")
				done := make(chan struct{})
				v.send(how, []string{"", "", kindNone, "0"}, func() {
					depths = append(depths, runtime.Callers(0, make([]uintptr, 100)))
					close(done)
				})
				<-done
			}
			if depths[0] != depths[1] {
				t.Errorf("calls are %d deep after 2 looks, and %d after 20", depths[0], depths[1])
			}
		}
	})
}

// What a view is told when it stores.
func TestAnswersOfACommit(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		hash := celldtest.ArrayOf(celldtest.BulkOf("hash"), celldtest.IntOf(-1))
		for _, c := range []struct {
			name, reply     string
			guessed         bool
			err             bool
			conflict, taken bool
			conflicts       int
			counted         int64
			raised          uint64
		}{
			{"stored", linktest.ViewReply("stored", -1), false, false, false, false, 0, 0, 0},
			{"stored by a guess", linktest.ViewReply("stored", -1), true, false, false, false, 0, 0, 0},
			{"a conflict", linktest.ViewReply("conflict", -1, hash), false, false, true, false, 1, 1, 0},
			{"a guess that was wrong", linktest.ViewReply("conflict", -1, hash), true, false, true, false, 1, 1, 0},
			{"a conflict of the first in a queue", linktest.ViewReply("conflict", 0, hash), false, false, true, true, 1, 1, 0},
			{"behind", linktest.ViewReply("behind", -1, hash, celldtest.BulkOf("77000")), false, false, true, false, 0, 1, 77000},
			{"behind no number", linktest.ViewReply("behind", -1, hash, celldtest.BulkOf("x")), false, true, false, false, 0, 1, 0},
			{"behind nothing", linktest.ViewReply("behind", -1), false, true, false, false, 0, 1, 0},
		} {
			e.Answers(c.reply)
			counted, last := s.counts.Conflicts.Load(), s.Policies.LastID()
			v := s.newView(s.deadline())
			v.add("k")
			if v.ticket.place = 1; c.guessed {
				v.state = stateCached
			}
			v.keys[0].want = content{kind: kindHash, text: "wanted"}
			s.changed = nil
			done := make(chan struct{})
			v.send(commitScript, []string{"", "", kindNone, "0"}, func() { close(done) })
			<-done
			if (v.Err != nil) != c.err || v.Conflict() != c.conflict || v.state == stateCached || (v.ticket.place > 0) != c.taken ||
				v.ticket.conflicts != c.conflicts {
				t.Errorf("%s: %v, state %v, %+v", c.name, v.Err, v.state, v.ticket)
			}
			if n := s.counts.Conflicts.Load() - counted; n != c.counted {
				t.Errorf("%s: %d conflicts are counted", c.name, n)
			}
			if id := s.Policies.LastID(); c.raised != 0 && id != c.raised || c.raised == 0 && id != last {
				t.Errorf("%s: the last ID is %d", c.name, id)
			}
			stored := strings.HasPrefix(c.name, "stored")
			if slices.Equal(s.changed, []string{"k"}) != stored {
				t.Errorf("%s: %q have changed", c.name, s.changed)
			}
			if (v.keys[0].read.text == "wanted") != stored || !stored && !c.err && v.keys[0].read.kind != kindHash {
				t.Errorf("%s: it holds %+v", c.name, v.keys[0].read)
			}
		}
	})
}

// While a Cluster moves keys one by one, a view first goes without the list of tickets, then asks again until shortly before its deadline.
func TestAViewWhileKeysMove(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		var with []int // keys of each request
		moving := 1
		e.AnswersBy(func(command string) string {
			var n int
			if _, err := fmt.Sscan(strings.Fields(command)[2], &n); err != nil {
				t.Error(err)
			}
			if with = append(with, n); len(with) <= moving {
				return movingReply
			}
			return linktest.ViewReply("read", -1, nothing)
		})
		ask := func(how *link.Script, left time.Duration) (*View, time.Duration) {
			v := s.newView(time.Now().Add(left))
			v.add("k")
			v.ticket.early = true
			with = nil
			began, done := time.Now(), make(chan struct{})
			v.send(how, []string{"", "", kindNone, "0"}, func() { close(done) })
			<-done
			return v, time.Since(began)
		}
		for _, c := range []struct {
			moving int
			left   time.Duration
			with   []int
			took   time.Duration
			fails  bool
		}{
			{0, time.Second, []int{2}, 0, false},
			{1, time.Second, []int{2, 1}, 0, false},
			{2, time.Second, []int{2, 1, 1}, movingPause, false},
			{4, time.Second, []int{2, 1, 1, 1, 1}, 3 * movingPause, false},
			{2, 2*movingPause + 1, []int{2, 1, 1}, movingPause, false},
			{2, 2 * movingPause, []int{2, 1}, 0, true},
		} {
			moving = c.moving
			v, took := ask(openScript, c.left)
			if !slices.Equal(with, c.with) || took != c.took || (v.Err != nil) != c.fails || c.fails && !link.Is(v.Err, link.CauseMoving) {
				t.Errorf("%+v: %v in %v, %v", c, with, took, v.Err)
			}
		}
	})
}

// A view's scripts have the list of tickets behind its keys where it may have to wait, and a commit also the hash of the marks.
func TestTheKeysOfAViewsScripts(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		marked := marks{key: "celld:ids", fields: []string{"12706"}, first: 5000, last: 6000}
		for i, c := range []struct {
			how   *link.Script
			early bool
			place int64
			marks marks
			keys  string
			args  int // the view's name, whether it begins a list, and the marks
		}{
			{openScript, false, 0, marks{}, "1 k", 2},
			{openScript, true, 0, marks{}, "2 k k\x00turns", 2},
			{openScript, false, 1, marks{}, "2 k k\x00turns", 2},
			{openScript, false, 0, marked, "1 k", 2},
			{commitScript, false, 0, marks{}, "2 k k\x00turns", 3},
			{commitScript, false, 0, marked, "3 k celld:ids k\x00turns", 6},
		} {
			got := ""
			e.AnswersBy(func(command string) string {
				got = command
				return linktest.ViewReply("read", -1, nothing)
			})
			v := s.newView(s.deadline())
			v.add("k")
			v.ticket.early, v.ticket.place, v.marks = c.early, c.place, c.marks
			done := make(chan struct{})
			v.send(c.how, []string{"rest"}, func() { close(done) })
			<-done
			header, ok := strings.CutPrefix(got, "EVALSHA "+c.how.Digest+" "+c.keys+" ")
			header, rest := strings.CutSuffix(header, " rest")
			if !ok || !rest || v.Err != nil || strings.Count(header, " ") != c.args-1 {
				t.Errorf("%d: %q, %v", i, got, v.Err)
			}
			if named := strings.Contains(c.keys, "turns"); named != (v.ticket.name != "" && strings.HasPrefix(header, v.ticket.name+" ")) {
				t.Errorf("%d: %q by %q", i, header, v.ticket.name)
			}
		}
	})
}

// A Cluster that moves a hash slot takes a change without its marks: so they are raised before, once, unless they are above its IDs.
func TestMarksWhileKeysMove(t *testing.T) {
	for mark, asked := range map[string]string{
		"4999": "commit 3 k celld:ids, raise 1 celld:ids 1, commit 1 k  0",
		"5000": "commit 3 k celld:ids, raise 1 celld:ids 1, open 1 k ",
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			var got []string
			e.AnswersBy(func(command string) string {
				words := strings.Split(command, " ")
				switch words[1] {
				case raiseScript.Digest:
					got = append(got, strings.Join(append([]string{"raise"}, words[2:5]...), " "))
					return celldtest.BulkOf(mark)
				case openScript.Digest:
					got = append(got, strings.Join(append([]string{"open"}, words[2:5]...), " "))
					return linktest.ViewReply("read", -1, nothing)
				}
				if got = append(got, "commit "+strings.Join(words[2:5], " ")); len(got) == 1 {
					return movingReply
				}
				got[len(got)-1] += strings.Join(words[5:7], " ")
				return linktest.ViewReply("stored", -1)
			})
			v := s.newView(s.deadline())
			v.add("k")
			v.marks = marks{key: "celld:ids", fields: []string{"12706"}, first: 5000, last: 6000}
			done := make(chan struct{})
			v.send(commitScript, []string{"rest"}, func() { close(done) })
			<-done
			if is := strings.Join(got, ", "); v.Err != nil || (v.state == stateConflict) != (mark == "5000") || is != asked {
				t.Errorf("%s: %q, %v, conflict %v", mark, is, v.Err, v.state == stateConflict)
			}
			if (s.Policies.LastID() == 5000) != (mark == "5000") {
				t.Errorf("the last ID is %d", s.Policies.LastID())
			}
		})
	}
}

// A view that only reads counts nothing: so its failure is none that may have counted a call. A commit's may have.
func TestFailuresOfAView(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		for reply, sent := range map[string]bool{"close": true, "-OOM command not allowed when used memory > 'maxmemory'.\r\n": false} {
			e.Answers(reply)
			for _, how := range []*link.Script{openScript, commitScript} {
				v := s.newView(s.deadline())
				v.add("k")
				done := make(chan struct{})
				v.send(how, []string{"", "", kindNone, "0"}, func() { close(done) })
				<-done
				down := (*link.DownError)(nil)
				if errors.As(v.Err, &down) != sent || sent && down.Sent != (how == commitScript) || !sent && v.Err != store.ErrFull {
					t.Errorf("%q: %#v", reply, v.Err)
				}
			}
		}
	})
}

// A view that waited for others until its deadline says so, and asks nothing. Before it has waited, the deadline is the engine's.
func TestAViewThatComesTooLate(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.AnswersBy(func(string) string { return linktest.ViewReply("read", -1, nothing) })
		for _, c := range []struct {
			name string
			left time.Duration
			late bool
		}{{"waits", 0, true}, {"waits", 1, false}, {"", time.Second, false}} {
			v := s.newView(time.Now().Add(c.left))
			v.add("k")
			v.ticket.name = c.name
			asked, done := e.Count(), make(chan struct{})
			v.send(openScript, nil, func() { close(done) })
			<-done
			if (v.Err == link.ErrLate) != c.late || (e.Count() == asked) != c.late {
				t.Errorf("%+v: %v, asked %d", c, v.Err, e.Count()-asked)
			}
		}
	})
}

// The instant until which a key must not have been there is what a view is to be stored within.
func TestAbsentUntil(t *testing.T) {
	s := newStore(Options{})
	v := s.newView(time.Now())
	if v.NowNS = 5e9; v.absentUntil() != "5950000" {
		t.Error(v.absentUntil())
	}
	if s.Time = func() int64 { return 1 }; v.absentUntil() != "" {
		t.Error(v.absentUntil())
	}
}

// What a key must hold for a change to be stored.
func TestWhatAChangeExpects(t *testing.T) {
	for want, c := range map[string]content{
		"[type list]":         {kind: "list", foreign: true},
		"[type string]":       {kind: kindString, text: "x", foreign: true},
		"[string 5]":          {kind: kindString, text: "5"},
		"[hash 2 a b c d]":    {kind: kindHash, fields: []field{{"a", "b"}, {"c", "d"}}},
		"[none]":              {kind: kindNone},
		"[type hash]":         {kind: kindHash, foreign: true, fields: []field{{"a", "b"}}},
		"[hash 0]":            {kind: kindHash},
		"[string 6 until 77]": {kind: kindString, text: "6 until 77"},
	} {
		if got := fmt.Sprint(c.expect(nil)); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// viewOf is a view that has read what its keys hold.
func (s *Store) viewOf(nowNS int64, names []string, contents ...content) *View {
	v := s.newView(time.Now().Add(time.Hour))
	v.NowNS = nowNS
	v.addAll(names)
	for i := range contents {
		v.keys[i].read = contents[i]
	}
	return v
}

// A change by a cached content takes part in the order of changes: the engine's key must still expire when it was thought to, give or take
// what keys Linger where nothing was said of it.
func TestTheExpiryThatACachedContentExpects(t *testing.T) {
	s := newStore(Options{})
	now := int64(1_700_000_000_000_000_000)
	tat := fmt.Sprint(now + 5e9)
	read := content{kind: kindString, text: tat, expiry: now/1e6 + 3000}
	atEnd := content{kind: kindString, text: tat, expiry: now/1e6 + 5000}
	for _, c := range []struct {
		read        content
		guessed     bool
		first, last string
	}{
		{read, true, "1700000002998", "1700000003002"},
		{atEnd, true, "1700000004998", "1700000006002"},
		{read, false, "", ""},
		{content{kind: kindNone}, true, "", ""},
	} {
		v := s.viewOf(now, []string{"k"}, c.read)
		if c.guessed {
			v.state = stateCached
		}
		v.Table()
		args, changed, err := v.script()
		if err != nil || changed || args[0] != c.first || args[1] != c.last {
			t.Errorf("%+v, guess %v: %q, %v, %v", c.read, c.guessed, args, changed, err)
		}
		v.Close()
	}
}

// A lease that a change brings has its ID marked, if it is above those that the key had. What was there already is not.
func TestTheLeasesThatAChangeMarks(t *testing.T) {
	s := newStore(Options{})
	now := time.Now().UnixNano()
	limit := linktest.Literal(t, "5/1h,algo=conc")
	v := s.viewOf(now, []string{"a", "b"}, content{kind: kindNone, expiry: noExpiry}, content{kind: kindNone, expiry: noExpiry})
	v.Table()
	terms := &store.Terms{}
	if _, err := v.Take([]store.Call{{Key: []byte("a"), Limit: limit}}, store.TakeOptions{Cost: 1, Terms: terms},
		store.Access{NowNS: now}); err != nil || terms.Lease == 0 {
		t.Fatal(err, terms)
	}
	_, changed, err := v.script()
	if err != nil || !changed || v.marks.last != uint64(terms.Lease) || v.marks.first != uint64(terms.Lease) {
		t.Fatalf("%v, %v, %+v", changed, err, v.marks)
	}
	stored := v.keys[0].want
	v.Close()
	for had, want := range map[uint64]uint64{0: uint64(terms.Lease), stored.lease - 1: stored.lease, stored.lease: 0, stored.lease + 1: 0} {
		read := stored
		read.lease = had
		v := s.viewOf(now, []string{"a"}, read)
		v.Table()
		v.keys[0].read.lease = had
		if _, _, err := v.script(); err != nil || v.marks.last != want {
			t.Errorf("it had %d: %+v, %v", had, v.marks, err)
		}
		v.Close()
	}
}

// A key that the view has not read is refused, and so is a change of what celld does not write.
func TestChangesThatAreRefused(t *testing.T) {
	s := newStore(Options{})
	now := time.Now().UnixNano()
	access := store.Access{NowNS: now}
	v := s.viewOf(now, []string{"a"}, content{kind: kindNone, expiry: noExpiry})
	defer v.Close()
	v.Table()
	_, err := v.Take([]store.Call{{Key: []byte("a"), Limit: linktest.Literal(t, "5/1h")}}, store.TakeOptions{Cost: 1}, access)
	if err != nil {
		t.Fatal(err)
	}
	args, changed, err := v.script()
	if err != nil || !changed || v.keys[0].want.kind != kindHash || len(args) < 6 || args[2] != kindNone || args[4] != "2" {
		t.Fatalf("%q, %v, %v", args, changed, err)
	}
	_, err = v.Take([]store.Call{{Key: []byte("b"), Limit: linktest.Literal(t, "5/1h")}}, store.TakeOptions{Cost: 1}, access)
	if err != nil {
		t.Fatal(err)
	}
	if _, changed, err := v.script(); err != ErrUndeclared || changed {
		t.Error(changed, err)
	}
	// What was foreign may stay or go, and nothing else becomes so.
	none, ours := content{kind: kindNone, expiry: noExpiry}, content{kind: kindString, text: fmt.Sprint(now + 9e9), expiry: now/1e6 + 9000}
	foreign := content{kind: "list", foreign: true, expiry: noExpiry}
	for i, c := range []struct {
		was, is content
		refused bool
	}{{foreign, foreign, false}, {foreign, none, false}, {foreign, ours, true}, {ours, foreign, true}, {none, foreign, true},
		{ours, ours, false}} {
		v := s.viewOf(now, []string{"k"}, c.is)
		v.Table()
		v.keys[0].read = c.was
		if _, _, err := v.script(); (err == store.ErrWrongType) != c.refused {
			t.Errorf("%d: %v", i, err)
		}
		v.Close()
	}
}
