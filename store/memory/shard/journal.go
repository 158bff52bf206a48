package shard

import "celld/store/memory/table"

// mostGone is how many bytes of removed keys, and 64 for each, a shard remembers for Drain. It bounds the memory while nobody
// drains, for example because the disk is full: 16 MB with 16 shards or more.
func mostGone(shards int) int { return min(1<<20, 16<<20/shards) }

// journal is the list of slots that changed since the last Drain. A change of a slot that is in it costs one
// comparison. All methods do nothing on a nil journal.
//
// A slot is in the list once, for whatever key it has when it is told; a flag in it says so, also while it is free.
type journal struct {
	changed []uint32
	gone    map[string]struct{} // Keys that were removed and have not come back
	bytes   int                 // of gone
	most    int                 // of bytes
	lost    bool                // there were more than most
}

// Mark notes a slot, once.
func (j *journal) Mark(n uint32, e *table.Slot) {
	if j == nil || e.Has(table.FlagJournaled) {
		return
	}
	j.changed = append(j.changed, n)
	e.SetInfo(table.FlagJournaled, table.FlagJournaled)
}

// put notes a new slot.
func (j *journal) put(n uint32, e *table.Slot, key []byte) {
	if j == nil {
		return
	}
	if _, gone := j.gone[string(key)]; gone {
		delete(j.gone, string(key))
		j.bytes -= goneBytes(key)
	}
	j.Mark(n, e)
}

// remove notes a slot that is about to be unlinked. A key that expires needs no note if it was told after its last change:
// whoever was told knows when it ends.
func (j *journal) remove(e *table.Slot, key []byte, expired bool) {
	if j == nil || expired && !e.Has(table.FlagJournaled) {
		return
	}
	if j.gone == nil {
		j.gone = make(map[string]struct{})
	}
	if _, gone := j.gone[string(key)]; gone {
		return
	}
	if j.bytes >= j.most {
		j.lost = true
		return
	}
	j.bytes += goneBytes(key)
	j.gone[string(key)] = struct{}{}
}

// mostSpare is how long a list of changes may be that is kept for the next ones: 128 KB.
const mostSpare = 1 << 15

// goneBytes is what it takes to remember a key that is gone.
func goneBytes(key []byte) int { return len(key) + 64 }

// clear forgets what a flush makes void.
func (j *journal) clear() {
	if j == nil {
		return
	}
	j.changed, j.gone, j.bytes, j.lost = nil, nil, 0, false
}
