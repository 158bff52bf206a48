package waiting_test

import (
	"slices"
	"testing"

	"celld/store/waiting"
)

func TestLine(t *testing.T) {
	var l waiting.Line[*caller]
	if l.First() != nil {
		t.Error("somebody is first where nobody waits")
	}
	all := map[uint64]*caller{}
	insert := func(ticket uint64, behind, want int) {
		t.Helper()
		c := &caller{}
		c.Ticket = ticket
		if all[ticket] = c; l.Insert(c, behind) != want {
			t.Errorf("%d is not at %d", ticket, want)
		}
	}
	insert(5, 0, 0)
	insert(3, 0, 0)
	insert(9, 0, 2)
	insert(7, 0, 2)
	insert(1, 2, 2) // behind two that are booked
	insert(4, 3, 3)
	order := func(want ...uint64) {
		t.Helper()
		var tickets []uint64
		for i, c := range l.Waiters {
			if tickets = append(tickets, c.Ticket); l.Index(c) != i {
				t.Errorf("%d is at %d, not at %d", c.Ticket, i, l.Index(c))
			}
		}
		if !slices.Equal(tickets, want) {
			t.Errorf("in line: %v, want %v", tickets, want)
		}
	}
	order(3, 5, 1, 4, 7, 9)
	for i, ticket := range []uint64{4, 3, 9, 5, 1, 7} {
		if at, want := l.Remove(all[ticket]), []int{3, 0, 3, 0, 0, 0}[i]; at != want {
			t.Errorf("%d was at %d, want %d", ticket, at, want)
		}
	}
	order()
	insert(2, 0, 0)
	insert(2, 0, 1) // as who came first
}

// Callers are those who wait for an answer.
func TestCallersOfALine(t *testing.T) {
	var l waiting.Line[*caller]
	first, joined, told := &caller{}, &caller{}, &caller{}
	first.Waker, joined.Waker = first, joined
	first.Followers = []*caller{joined}
	l.Insert(first, 0)
	l.Insert(told, 0)
	if n := l.Callers(); n != 2 {
		t.Errorf("%d, want 2", n)
	}
}

func TestLines(t *testing.T) {
	var m waiting.Lines[*int]
	a, b := new(int), new(int)
	if !m.Add("k", a) || m.Add("k", b) || !m.Add("other", b) {
		t.Error("a first line of a key is not told from another")
	}
	if m.Remove("k", a) || m.OfKey["k"][0] != b {
		t.Errorf("the wrong one is removed: %v", m.OfKey)
	}
	if !m.Remove("k", b) || m.OfKey["k"] != nil || len(m.OfKey) != 1 {
		t.Errorf("left: %v", m.OfKey)
	}
}
