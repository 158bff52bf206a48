package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// The list of tickets is in the hash slot of its key, or there is none.
func TestWhereTicketsAre(t *testing.T) {
	for _, c := range []struct {
		cluster           bool
		prefix, key, want string
	}{
		{false, "p:", "p:k", "p:k"}, {false, "", "a}b", "a}b"},
		{true, "p:", "p:{t}k", "p:{t}k"}, {true, "p:", "p:k", "p:{p:k}"}, {true, "", "k", "{k}"}, {true, "p:", "k", "{k}"},
		{true, "", "a}b", "-"}, {true, "p:", "p:a}b", "-"},
	} {
		s := newStore(Options{Prefix: c.prefix, Policies: &policy.Set{}})
		if c.cluster {
			linktest.InCluster(s.Link)
		}
		want := c.want + ticketsSuffix
		if c.want == "-" {
			want = ""
		}
		got := s.Link.Beside(c.key, ticketsSuffix)
		if got != want {
			t.Errorf("%+v: %q", c, got)
		}
		turn := ticket{}
		keys, args := turn.arguments(s.Views, []string{c.key})
		if want == "" && (len(keys) != 1 || !slices.Equal(args, []string{"", ""})) || want != "" &&
			(!slices.Equal(keys, []string{c.key, want}) || args[0] == "" || args[0] != turn.name) {
			t.Errorf("%+v: %q, %q", c, keys, args)
		}
	}
	s := newStore(Options{Policies: &policy.Set{}})
	for conflicts, begins := range map[int]string{0: "", conflictsBeforeTicket - 2: "", conflictsBeforeTicket - 1: "1",
		conflictsBeforeTicket: "1"} {
		turn := ticket{name: "me", conflicts: conflicts}
		if _, args := turn.arguments(s.Views, []string{"k"}); !slices.Equal(args, []string{"me", begins}) {
			t.Errorf("%d conflicts: %q", conflicts, args)
		}
	}
	if keys, args := (&ticket{none: true}).arguments(s.Views, []string{"k"}); len(keys) != 1 || args[0] != "" {
		t.Errorf("without turns: %q, %q", keys, args)
	}
	for before, want := range map[int64]time.Duration{0: 0, 1: 2 * time.Millisecond, 4: 8 * time.Millisecond, 100: 25 * time.Millisecond} {
		if got := (&ticket{place: before + 1}).pause(8 * time.Millisecond); got != want {
			t.Errorf("%d before it: %v", before, got)
		}
	}
}

// Marks are raised before a change that a Cluster takes without them: where they are behind nothing is stored.
func TestMarksThatAreRaisedApart(t *testing.T) {
	for _, c := range []struct {
		answer              string
		first               uint64
		stores, asks, fails bool
	}{
		{"$1\r\n6\r\n", 7, true, false, false}, {"$1\r\n7\r\n", 7, false, true, false}, {"$1\r\n8\r\n", 7, false, true, false},
		{"$1\r\n8\r\n", 0, true, false, false}, {"$1\r\n0\r\n", 0, true, false, false}, {"-READONLY x\r\n", 7, false, false, true},
		{"$1\r\nx\r\n", 7, false, false, true},
	} {
		e := celldtest.NewAiling(t)
		s := newTestStore(t, e.Socket, Options{})
		e.AnswersBy(func(command string) string {
			if strings.Contains(command, " m ") {
				return c.answer
			}
			return "-READONLY x\r\n"
		})
		v := s.newView(s.deadline())
		v.add("k")
		v.marks = marks{key: "m", fields: []string{"5"}, first: c.first, last: 9}
		stored, done := false, make(chan struct{})
		v.raise(func() { stored = true; close(done) }, func() { close(done) })
		<-done
		if n := e.Count(); stored != c.stores || v.marks.apart != c.stores || (n == 2) != c.asks || (v.state == stateConflict) != c.asks ||
			(v.Err != nil) != (c.fails || c.asks) {
			t.Errorf("%+v: stored %v, %d requests, conflict %v, %v", c, stored, n, v.state == stateConflict, v.Err)
		}
		if next := s.Policies.NextIDOf(0, 0, processes); c.asks && next <= c.first {
			t.Errorf("%+v: the next ID is %d", c, next)
		}
	}
	for i, c := range []struct {
		m    marks
		args string
	}{
		{marks{}, "0"}, {marks{key: "m", fields: []string{"5", "6"}, first: 7, last: 9}, "2 7 9 5 6"},
		{marks{key: "m", fields: []string{"5"}, apart: true}, "0"},
	} {
		if got := strings.Join(c.m.args(), " "); got != c.args {
			t.Errorf("%d: %q", i, got)
		}
	}
	v, _ := viewAt(in2100, content{kind: kindNone})
	v.add("o")
	for highest, want := range map[uint64]string{0: "", 5: IDsKey, policy.MostID: IDsKey, policy.MostID + 1: ""} {
		v.table.first, v.table.last = 0, 0
		if m := v.newMarks(highest); m.key != want || want != "" && (m.last != highest || len(m.fields) != 2) {
			t.Errorf("%d: %+v", highest, m)
		}
	}
	v.table.first, v.table.last = 3, 6
	if m := v.newMarks(5); m.first != 3 || m.last != 6 {
		t.Errorf("%+v", m)
	}
}

// A view without keys has this process's time, or the test's, and is given at once.
func TestAViewOfNoKeys(t *testing.T) {
	before := time.Now().UnixNano()
	for _, own := range []func() int64{nil, func() int64 { return in2100 }} {
		s := newStore(Options{Policies: &policy.Set{}, Time: own})
		w := make(signal, 1)
		v := s.Open(nil, w)
		<-w
		if v.Err != nil || own != nil && v.NowNS != in2100 || own == nil && (v.NowNS < before || v.NowNS > time.Now().UnixNano()) {
			t.Errorf("%d, %v", v.NowNS, v.Err)
		}
		if kind, foreign := v.Foreign([]byte("k")); foreign || kind != "" {
			t.Errorf("%q", kind)
		}
		v.Close()
	}
}
