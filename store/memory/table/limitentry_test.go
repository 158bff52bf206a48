package table

import (
	"testing"

	"celld/cell"
)

// A ring that goes leaves its place, and the others as they are.
func TestRingsComeAndGo(t *testing.T) {
	var all limitEntries
	var a, b LimitEntry
	all.setRing(&a, []uint64{1})
	all.setRing(&b, []uint64{2})
	all.setRing(&a, nil)
	if got := all.ring(&b); len(got) != 1 || got[0] != 2 {
		t.Errorf("the other ring is %v", got)
	}
	if all.setRing(&b, nil); all.Rings.FreePlaces.InUse != 0 || all.ring(&b) != nil {
		t.Errorf("%d rings are kept", all.Rings.FreePlaces.InUse)
	}
}

// A limit entry has the limit that was kept last, in all of its numbers, and what was idle in a table counts by its kind.
func TestKeptLimitAndIdleBytes(t *testing.T) {
	var reserves Reserves
	reserves.Init()
	var wall WallAhead
	var table Table
	table.Clear()
	table.UseMemory(&reserves, &wall)
	if idle := table.IdleBytes(); idle != 0 {
		t.Errorf("%d bytes are idle in an empty table", idle)
	}
	_, e := table.Slabs.Alloc()
	if idle := table.IdleBytes(); idle != (SlabSize-1)*48 {
		t.Errorf("%d bytes are idle beside one slot", idle)
	}
	p := table.AddLimit(e, &cell.Limit{}, 0)
	for _, text := range []string{"5/1s", "5/1s,burst=3", "7/1s,burst=3", "7/1m,burst=3"} {
		l, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		table.Limits.Keep(p, &l, l.Code(), &cell.State{})
		if kept := table.Limits.Limit(p); kept.Count != l.Count || kept.Burst != l.Burst || kept.PeriodNS != l.PeriodNS {
			t.Errorf("%s is kept as %+v", text, kept)
		}
	}
	if idle := table.IdleBytes(); idle != (SlabSize-1)*(48+LimitEntryBytes) {
		t.Errorf("%d bytes are idle beside one slot and one limit entry", idle)
	}
}
