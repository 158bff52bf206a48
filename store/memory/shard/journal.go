package shard

import "celld/store/memory/table"

// mostRemoved is how many bytes of removed keys, and 64 for each, a shard notes for Drain. It bounds the memory while nobody drains, for
// example because the disk is full: 16 MB with 16 shards or more.
func mostRemoved(shards int) int { return min(1<<20, 16<<20/shards) }

// journal is the list of slots that changed since the last Drain. A change of a slot that is in it costs one
// comparison. All methods do nothing on a nil journal.
//
// A slot is in the list once, for whatever key it has when it is told. FlagJournaled says so, also while the slot is free.
type journal struct {
	changed []uint32
	removed map[string]struct{} // keys that were removed and have not come back
	bytes   int                 // of removed
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
	if _, gone := j.removed[string(key)]; gone {
		delete(j.removed, string(key))
		j.bytes -= removedBytes(key)
	}
	j.Mark(n, e)
}

// remove notes a slot that is about to be unlinked. A key that expires needs no note if it was told after its last change:
// whoever was told knows when it ends.
func (j *journal) remove(e *table.Slot, key []byte, expired bool) {
	if j == nil || expired && !e.Has(table.FlagJournaled) {
		return
	}
	if j.removed == nil {
		j.removed = make(map[string]struct{})
	}
	if _, gone := j.removed[string(key)]; gone {
		return
	}
	if j.bytes >= j.most {
		j.lost = true
		return
	}
	j.bytes += removedBytes(key)
	j.removed[string(key)] = struct{}{}
}

// mostSpare is how long a list of changes may be that is kept for the next ones: 128 KB.
const mostSpare = 1 << 15

// removedBytes is what it takes to note a removed key.
func removedBytes(key []byte) int { return len(key) + 64 }

// clear forgets what a flush makes void.
func (j *journal) clear() {
	if j == nil {
		return
	}
	j.changed, j.removed, j.bytes, j.lost = nil, nil, 0, false
}
