package memory

import (
	"celld/store"
	"celld/store/memory/table"
	"sync"
)

// Change is what became of one key, or of all.
type Change struct {
	Key     []byte // valid until the function that is told returns
	State   store.Value
	Deleted bool // the key is gone: deleted, renamed, evicted, or expired before its last change was told
	Flush   bool // all keys are gone; Key is nil. What was put since then follows
	Lost    bool // some keys are gone that nobody was told of, because they were too many; Key is nil
}

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

// mark notes a slot, once.
func (j *journal) mark(n uint32, e *table.Slot) {
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
	j.mark(n, e)
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

// drain is how far Drain has come.
type drain struct {
	mu      sync.Mutex // held, before that of a shard, by SetWall and all that use it
	shard   int
	began   bool // the shard's journal has been taken
	list    []uint32
	slots   []uint32 // of list, those that are still to be told
	gone    []string
	flushes uint64 // that have been told
	scratch [table.HugeKey]byte
}

// Drain tells fn some 64 of the changes since they were last told, or 1 MB of them, and reports whether there are more. Called
// until there are none, it tells each key that changed before the first call, once, with its latest state. Whoever applies all changes
// to a copy has the store's keys in it, but for dead ones. Changes made meanwhile may be told now or the next time.
//
// fn is called under a lock: it must be quick and not use the store. One goroutine at a time may call Drain.
// Without Options.Journal there are no changes.
func (s *Store) Drain(fn func(Change)) (more bool) {
	d := &s.drain
	sh := &s.shards[d.shard]
	if sh.journal == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	sh.lock(0)
	if flushes := s.flushes.Load(); flushes != d.flushes {
		// All that is still to be told was before the flush. To tell it after would bring it back.
		d.flushes, d.slots, d.gone, d.began = flushes, nil, nil, false
		fn(Change{Flush: true})
	}
	if !d.began {
		d.take(sh.journal, fn)
	}
	told := int64(0)
	for range min(len(d.gone), perLock) { // these first: so whoever copies has room for the others. All are 1 MB at most (mostGone)
		key := d.gone[0]
		d.gone[0] = ""
		d.gone = d.gone[1:]
		told += table.CostBytes(len(key))
		name := []byte(key)
		if n, _ := sh.Slot(s.hash(name), name); n == table.NoSlot { // it may have come back, live or dead
			fn(Change{Key: name, Deleted: true})
		}
	}
	for range min(len(d.slots), perLock) {
		if told >= bytesPerLock {
			break
		}
		n := d.slots[0]
		d.slots = d.slots[1:]
		e := sh.Slabs.At(n)
		e.SetInfo(table.FlagJournaled, 0) // before the state is read: a call without the lock changes that first
		if e.List() != table.FreeList {
			e.Settle()
			told += sh.CostBytes(n, e)
			st := sh.full(n, e)
			if st.Limits != nil {
				sh.tell(e, *st.Limits)
			}
			fn(Change{Key: sh.Keys.View(n, e, &d.scratch), State: inWall(st, sh.Wall.Load())})
		} else {
			sh.Slabs.Told(n)
		}
	}
	sh.unlock()
	if len(d.slots)+len(d.gone) > 0 {
		return true
	}
	d.shard, d.began = (d.shard+1)%len(s.shards), false
	return d.shard != 0
}

// take takes over what a shard has noted.
func (d *drain) take(j *journal, fn func(Change)) {
	d.began = true
	if cap(d.list) > mostSpare {
		d.list = nil
	}
	d.list, j.changed = j.changed, d.list[:0]
	d.slots = d.list
	for key := range j.gone {
		d.gone = append(d.gone, key)
	}
	if j.lost {
		fn(Change{Lost: true})
	}
	j.gone, j.bytes, j.lost = nil, 0, false
}

// Changed is the number of changes still to be told, about: of slots, and of keys that are gone.
func (s *Store) Changed() (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		if sh.journal == nil {
			return 0
		}
		sh.mu.Lock()
		n += len(sh.journal.changed) + len(sh.journal.gone)
		sh.unlock()
	}
	return n
}
