package table

import "testing"

// The memory of rings goes with the last of them.
func TestNoRings(t *testing.T) {
	var all tallies
	var a, b Tally
	all.setRing(&a, []uint64{1})
	all.setRing(&b, []uint64{2})
	all.setRing(&a, nil)
	if got := all.ring(&b); len(got) != 1 || got[0] != 2 {
		t.Errorf("the other ring is %v", got)
	}
	if all.setRing(&b, nil); all.Rings != nil || all.FreeRings != nil {
		t.Errorf("%d rings are kept", len(all.Rings))
	}
}
