package store

import (
	"hash/maphash"
	"slices"
)

// Change is what became of one key, or of all.
type Change struct {
	Key     []byte // valid until the function that is told returns
	State   State
	Deleted bool // the key is gone: deleted, renamed, evicted, or expired before its last change was told
	Flush   bool // all keys are gone; Key is nil. What was put since then follows
	Lost    bool // some keys are gone that nobody was told of, because they were too many; Key is nil
}

// mostGone is how many bytes of removed keys, and 64 for each, a shard remembers for Drain. A store whose changes nobody
// drains, as the disk that they go to is full, takes no more memory than that: 16 MB with 16 shards.
const mostGone = 1 << 20

// journal is the list of slots that changed since the last Drain. A change of a slot that is in it costs one
// comparison. All methods do nothing on a nil journal.
//
// A slot is in the list once, for whatever key it has when it is told; a flag in it says so, also while it is free.
type journal struct {
	changed []uint32
	gone    map[string]struct{} // keys that were removed and have not come back
	bytes   int                 // of gone
	lost    bool                // there were more than mostGone
	undo    map[string]before   // nil: not kept
}

// before is what a key was before its first change since the last Drain.
type before struct {
	there bool
	state State
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
	if _, gone := j.gone[string(key)]; gone {
		delete(j.gone, string(key))
		j.bytes -= goneBytes(key)
	}
	j.mark(n, e)
}

// remove notes a slot that is about to be unlinked. That a key expires is no news to those who know its state; they do
// where it has not been changed since it was told.
func (j *journal) remove(e *slot, key []byte, expired bool) {
	if j == nil || expired && e.use&flagJournaled == 0 {
		return
	}
	if j.gone == nil {
		j.gone = make(map[string]struct{})
	}
	if _, gone := j.gone[string(key)]; gone {
		return
	}
	if j.bytes >= mostGone {
		j.lost = true
		return
	}
	j.bytes += goneBytes(key)
	j.gone[string(key)] = struct{}{}
}

// goneBytes is what it takes to remember a key that is gone.
func goneBytes(key []byte) int { return len(key) + 64 }

// remember notes what a key is before it changes. e is nil for one that is not there.
func (sh *shard) remember(n uint32, e *slot, key []byte) {
	j := sh.journal
	if j == nil || j.undo == nil {
		return
	}
	if _, noted := j.undo[string(key)]; noted {
		return
	}
	b := before{there: e != nil}
	if b.there {
		b.state = sh.state(n, e)
	}
	j.undo[string(key)] = b
}

// clear forgets what a flush makes void.
func (j *journal) clear() {
	if j == nil {
		return
	}
	j.changed, j.gone, j.bytes, j.lost = nil, nil, 0, false
	if j.undo != nil {
		j.undo = make(map[string]before)
	}
}

// drain is how far Drain has come.
type drain struct {
	shard   int
	began   bool // the shard's journal has been taken
	slots   []uint32
	gone    []string
	flushes uint64 // that have been told
	undo    []map[string]before
}

// Drain tells fn some 64 of the changes since they were last told, and reports whether there are more: called until there
// are none it tells each key that changed before the first call, once, with its latest state. Whoever applies all changes
// to a copy has the store's keys in it, but for dead ones. Changes made meanwhile may be told now or the next time.
//
// fn is called under a lock: it must be quick and not use the store. One goroutine at a time may call Drain, Undo and
// Keep. Without Options.Journal there are no changes.
func (s *Store) Drain(fn func(Change)) (more bool) {
	d := &s.drain
	sh := &s.shards[d.shard]
	if sh.journal == nil {
		return false
	}
	sh.mu.Lock()
	if flushes := s.flushes.Load(); flushes != d.flushes {
		// All that is still to be told was before the flush. To tell it after would bring it back.
		d.flushes, d.slots, d.gone, d.began = flushes, nil, nil, false
		fn(Change{Flush: true})
	}
	if !d.began {
		d.take(sh.journal, fn)
	}
	for range min(len(d.gone), perLock) { // these first: so whoever copies has room for the others
		key := d.gone[0]
		d.gone = d.gone[1:]
		if !sh.holds([]byte(key)) {
			fn(Change{Key: []byte(key), Deleted: true})
		}
	}
	var scratch [hugeKey]byte
	for range min(len(d.slots), perLock) {
		n := d.slots[0]
		d.slots = d.slots[1:]
		e := sh.slabs.at(n)
		e.use &^= flagJournaled
		if e.list() != freeList {
			fn(Change{Key: sh.keys.view(n, e, &scratch), State: sh.full(n, e)})
		}
	}
	sh.mu.Unlock()
	if len(d.slots)+len(d.gone) > 0 {
		return true
	}
	d.shard, d.began = (d.shard+1)%len(s.shards), false
	return d.shard != 0
}

// take takes over what a shard has noted.
func (d *drain) take(j *journal, fn func(Change)) {
	d.began = true
	d.slots = j.changed
	for key := range j.gone {
		d.gone = append(d.gone, key)
	}
	if j.lost {
		fn(Change{Lost: true})
	}
	j.changed, j.gone, j.bytes, j.lost = nil, nil, 0, false
	if j.undo != nil {
		d.undo = append(d.undo, j.undo)
		j.undo = make(map[string]before)
	}
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
		sh.mu.Unlock()
	}
	return n
}

// KeepUndo has every change from now on remember what its key was, until Keep, so that Undo can take it back. It costs a
// change some 0.1 µs.
func (s *Store) KeepUndo() {
	for i := range s.shards {
		s.shards[i].mu.Lock()
		s.shards[i].journal.undo = make(map[string]before)
		s.shards[i].mu.Unlock()
	}
}

// Keep forgets what Undo could take back of the changes told so far.
func (s *Store) Keep() { s.drain.undo = s.drain.undo[:0] }

// Undo takes back the changes told since the last Keep, and what has happened to the same keys since then. What Flush has
// removed stays so.
func (s *Store) Undo(nowNS int64) {
	for _, keys := range slices.Backward(s.drain.undo) { // the newest first, so that the oldest state stays
		for key, was := range keys {
			hash := s.hash([]byte(key))
			// It fails only for want of room, in a store that has become smaller.
			_ = s.Update([]byte(key), Access{NowNS: nowNS, NoTouch: true}, func(State, bool) (State, Action) {
				if was.there {
					return was.state, Put
				}
				return State{}, Delete
			})
			sh := s.shardOf(hash)
			sh.mu.Lock()
			delete(sh.journal.undo, key)
			sh.mu.Unlock()
		}
	}
	s.Keep()
}

// holds reports whether a key is there, live or dead.
func (sh *shard) holds(key []byte) bool {
	n, _ := sh.slot(maphash.Bytes(sh.seed, key), key)
	return n != noSlot
}
