package store

// Change is what became of one key, or of all.
type Change struct {
	Key     string
	State   State // as it was when Drain came to it
	Deleted bool  // the key is gone: deleted, renamed, evicted, or expired and removed
	Flush   bool  // all keys are gone; Key is empty. What was put since then follows, in this Drain or the next
}

// journal is the list of slots that changed since the last Drain, one for each key. A change of a slot that is in it
// costs one comparison. All methods do nothing on a nil journal.
type journal struct {
	changed []*slot
	gone    map[string]uint32 // places in changed of slots that were removed, to be reused should the key come back
}

// mark notes a slot, once.
func (j *journal) mark(e *slot) {
	if j == nil || e.journalPos != 0 {
		return
	}
	j.changed = append(j.changed, e)
	e.journalPos = uint32(len(j.changed))
}

// put notes a new slot, in the place of the last one with this key if that is still to be told.
func (j *journal) put(e *slot) {
	if j == nil {
		return
	}
	if pos, ok := j.gone[e.key]; ok {
		j.changed[pos-1], e.journalPos = e, pos
		delete(j.gone, e.key)
		return
	}
	j.mark(e)
}

// remove notes a slot that has been unlinked.
func (j *journal) remove(e *slot) {
	if j == nil {
		return
	}
	j.mark(e)
	if pos := int(e.journalPos); pos > len(j.changed) || j.changed[pos-1] != e {
		return // it is in the list of a Drain under way, which will find it gone
	}
	if j.gone == nil {
		j.gone = make(map[string]uint32)
	}
	j.gone[e.key] = e.journalPos
}

// takeAll returns the list and begins a new one. Slots in it count as marked until Drain has read them, so that a change
// up to then is not told twice.
func (j *journal) takeAll() []*slot {
	changed := j.changed
	*j = journal{}
	return changed
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
		var todo []*slot
		for first := true; first || len(todo) > 0; first = false {
			batch = batch[:0]
			sh.mu.Lock()
			if flushes := s.flushes.Load(); flushes != s.flushesDrained {
				// All that is in todo was before the flush. To tell it after would bring it back.
				s.flushesDrained, todo = flushes, nil
				batch = append(batch, Change{Flush: true})
			}
			if first {
				todo = sh.journal.takeAll()
			}
			n := min(len(todo), perLock)
			for _, e := range todo[:n] {
				e.journalPos = 0
				batch = append(batch, changeOf(e))
			}
			todo = todo[n:]
			sh.mu.Unlock()
			for _, c := range batch {
				fn(c)
			}
		}
	}
}

func changeOf(e *slot) Change {
	if e.densePos == noSlot {
		return Change{Key: e.key, Deleted: true}
	}
	return Change{Key: e.key, State: e.state()}
}
