package store

import "hash/maphash"

// Change is what became of one key, or of all.
type Change struct {
	Key     string
	State   State // as it was when Drain came to it
	Deleted bool  // the key is gone: deleted, renamed, evicted, or expired and removed
	Flush   bool  // all keys are gone; Key is empty. What was put since then follows, in this Drain or the next
}

// journal is the list of slots that changed since the last Drain. A change of a slot that is in it costs one
// comparison. All methods do nothing on a nil journal.
//
// A slot is in the list once, for whatever key it has when it is told; a flag in it says so, also while it is free.
type journal struct {
	changed []uint32
	gone    map[string]struct{} // keys that were removed and have not come back
}

// mark notes a slot, once.
func (j *journal) mark(n uint32, e *slot) {
	if j == nil || e.use&flagJournaled != 0 {
		return
	}
	j.changed = append(j.changed, n)
	e.use |= flagJournaled
}

// put notes a new slot.
func (j *journal) put(n uint32, e *slot, key []byte) {
	if j == nil {
		return
	}
	delete(j.gone, string(key))
	j.mark(n, e)
}

// remove notes a slot that is about to be unlinked.
func (j *journal) remove(n uint32, e *slot, key []byte) {
	if j == nil {
		return
	}
	if j.gone == nil {
		j.gone = make(map[string]struct{})
	}
	j.gone[string(key)] = struct{}{}
}

// Drain calls fn for what changed since the last Drain: each key once, with its latest state, in no order. fn is called
// with no shard locked and may use the store, but not Drain. Whoever applies all changes of all Drains to a copy has
// the store's keys in it, but for the dead ones not removed yet.
//
// Changes made meanwhile may be told now or by the next Drain. Without Options.Journal it does nothing.
func (s *Store) Drain(fn func(Change)) {
	s.draining.Lock()
	defer s.draining.Unlock()
	batch := make([]Change, 0, perLock+1)
	for i := range s.shards {
		sh := &s.shards[i]
		if sh.journal == nil {
			return
		}
		var todo changes
		for first := true; first || !todo.empty(); first = false {
			batch = batch[:0]
			var gone map[string]struct{}
			sh.mu.Lock()
			if flushes := s.flushes.Load(); flushes != s.flushesDrained {
				// All that is in todo was before the flush. To tell it after would bring it back.
				s.flushesDrained, todo = flushes, changes{}
				batch = append(batch, Change{Flush: true})
			}
			if first {
				todo.slots, gone = sh.journal.changed, sh.journal.gone
				*sh.journal = journal{}
			}
			batch = sh.tell(&todo, batch)
			sh.mu.Unlock()
			for key := range gone {
				todo.gone = append(todo.gone, key)
			}
			for _, c := range batch {
				fn(c)
			}
		}
	}
}

// changes are what has been taken from a journal and is still to be told.
type changes struct {
	slots []uint32
	gone  []string
}

func (c *changes) empty() bool { return len(c.slots) == 0 && len(c.gone) == 0 }

// tell appends perLock changes of those taken from the shard's journal. What has happened to a key since is in the
// journal: a slot counts as marked until it is told, so that its changes up to then are not told twice.
func (sh *shard) tell(todo *changes, batch []Change) []Change {
	var scratch [hugeKey]byte
	slots := min(len(todo.slots), perLock)
	for range slots {
		n := todo.slots[0]
		todo.slots = todo.slots[1:]
		e := sh.slabs.at(n)
		e.use &^= flagJournaled
		if e.list() != freeList {
			batch = append(batch, Change{Key: string(sh.keys.view(n, e, &scratch)), State: sh.state(n, e)})
		}
	}
	for range min(len(todo.gone), perLock-slots) {
		key := todo.gone[0]
		todo.gone = todo.gone[1:]
		if !sh.holds([]byte(key)) {
			batch = append(batch, Change{Key: key, Deleted: true})
		}
	}
	return batch
}

// holds reports whether a key is there, live or dead.
func (sh *shard) holds(key []byte) bool {
	n, _ := sh.slot(maphash.Bytes(sh.seed, key), key)
	return n != noSlot
}
