package shard

import (
	"testing"

	"celld/store"
)

// Each caller counts in its lane, and callers beyond the last lane share them. Stats has them all.
func TestLanes(t *testing.T) {
	const callers = 256
	s := New(Options{})
	for caller := range callers {
		s.Lane(store.Access{Lane: uint8(caller)}).Count(Counts{hits: 2, changes: 1})
	}
	for i := range s.lanes {
		if hits, changes := s.lanes[i].hits.Load(), s.lanes[i].changes.Load(); hits != 2*callers/lanes || changes != callers/lanes {
			t.Errorf("lane %d: %d hits, %d changes", i, hits, changes)
		}
	}
	if got := s.Stats(0).Hits; got != 2*callers {
		t.Errorf("%d hits, want %d", got, 2*callers)
	}
}
