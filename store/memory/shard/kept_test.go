package shard

import "testing"

// A list of changes is used again if it is short. A long one is not kept.
func TestAListOfChangesIsKeptIfItIsShort(t *testing.T) {
	s := New(Options{Shards: 1, Journal: true})
	journal := s.All[0].Journal
	s.Teller.step = len(s.All) // that of keys that are there
	lists := func(changes int) (capacity int) {
		journal.changed = append(journal.changed, make([]uint32, changes)...)
		s.Teller.collect(journal, nil)
		return cap(journal.changed)
	}
	lists(100)
	if kept := lists(10); kept < 100 {
		t.Errorf("of a list of 100 changes %d places are kept", kept)
	}
	lists(mostSpare + 1)
	if kept := lists(10); kept > mostSpare {
		t.Errorf("%d places are kept", kept)
	}
}
