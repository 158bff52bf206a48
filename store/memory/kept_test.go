package memory

import "testing"

// A list of changes is used again if it is short. A long one is not kept.
func TestAListOfChangesIsKeptIfItIsShort(t *testing.T) {
	s := New(Options{Shards: 1, Journal: true})
	journal := s.shards[0].journal
	lists := func(changes int) (capacity int) {
		journal.changed = append(journal.changed, make([]uint32, changes)...)
		s.drain.take(journal, nil)
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

// The memory of rings goes with the last of them.
func TestNoRings(t *testing.T) {
	var all tallies
	var a, b tally
	all.setRing(&a, []uint64{1})
	all.setRing(&b, []uint64{2})
	all.setRing(&a, nil)
	if got := all.ring(&b); len(got) != 1 || got[0] != 2 {
		t.Errorf("the other ring is %v", got)
	}
	if all.setRing(&b, nil); all.rings != nil || all.freeRings != nil {
		t.Errorf("%d rings are kept", len(all.rings))
	}
}
