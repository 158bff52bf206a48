package shard

import (
	"math"
	"sync"

	"celld/store"
	"celld/store/memory/table"
)

// Change is what became of one key, or of all.
type Change struct {
	Key     []byte // valid until the function that is told returns
	State   store.Value
	Deleted bool // the key is gone: deleted, renamed, evicted, or expired before its last change was told
	Flush   bool // all keys are gone; Key is nil. What was put since then follows
	Lost    bool // too many keys were removed to tell of all; Key is nil
}

// Teller tells of changes. It knows how far Drain has come in a pass. A pass first tells of the keys that were removed from all shards.
// Then it tells of each shard: of those that were removed meanwhile, and of those that are there. So a copy of a full store has room for
// these.
type Teller struct {
	*Shards
	mu      sync.Mutex // held, before that of a shard, by SetWall and all that use it
	step    int        // of a pass: a shard, or that and how many there are
	began   bool       // what the shard has noted has been taken
	list    []uint32
	slots   []uint32 // of list, those that are still to be told
	removed []string
	flushed uint64 // the flushes that have been told
	scratch [table.HugeKey]byte
}

// Drain tells fn some 64 of the changes since the last call, or 1 MB of them, and reports whether there are more. Called until there are
// none, it tells of each key that changed before the first call once, with its latest state. A copy to which all changes are applied holds
// the store's keys, except dead ones. Changes made meanwhile may be told now or the next time.
//
// fn is called under a lock: it must be quick and not use the store. One goroutine at a time may call Drain.
// Without Options.Journal there are no changes.
func (d *Teller) Drain(fn func(Change)) (more bool) {
	sh := d.shard()
	if sh.Journal == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	sh.Lock(0)
	d.tell(PerLock, bytesPerLock, fn)
	sh.Unlock()
	return d.next()
}

// DrainAtOnce is Drain of all changes, at one instant between two calls. What was told since the last time is then what the keys held
// at that instant. If there is more than so many bytes, by the estimate of MaxBytes, it tells a part of that, and returns false.
//
// No call is decided meanwhile: 64 KB, some 700 keys, take 0.1 ms.
func (d *Teller) DrainAtOnce(most int64, fn func(Change)) (all bool) {
	if d.All[0].Journal == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.All {
		d.All[i].Lock(0)
	}
	defer func() {
		for i := range d.All {
			d.All[i].Unlock()
		}
	}()
	for d.step > 0 || d.began { // what is left of a pass
		if most -= d.tell(math.MaxInt, most, fn); most <= 0 {
			return false
		}
		d.next()
	}
	for more := true; more; more = d.next() {
		if most -= d.tell(math.MaxInt, most, fn); most <= 0 {
			return false
		}
	}
	return true
}

func (d *Teller) shard() *Shard { return &d.All[d.step%len(d.All)] }

// next goes on to the next step once all of one is told, and reports whether the pass goes on.
func (d *Teller) next() (more bool) {
	if len(d.slots)+len(d.removed) > 0 {
		return true
	}
	d.step, d.began = (d.step+1)%(2*len(d.All)), false
	return d.step != 0
}

// tell tells of up to so many keys or bytes of a step, and returns how many bytes. The shard is locked.
func (d *Teller) tell(keys int, bytes int64, fn func(Change)) (told int64) {
	sh := d.shard()
	if flushes := d.flushes.Load(); flushes != d.flushed {
		// All that is still to be told was before the flush. To tell it after would bring it back.
		d.flushed, d.slots, d.removed, d.began = flushes, nil, nil, false
		fn(Change{Flush: true})
	}
	if !d.began {
		d.collect(sh.Journal, fn)
	}
	for range min(len(d.removed), keys) { // all are 1 MB at most (mostRemoved)
		key := d.removed[0]
		d.removed[0] = ""
		d.removed = d.removed[1:]
		told += table.CostBytes(len(key))
		name := []byte(key)
		if n, _ := sh.Slot(d.Hash(name), name); n == table.NoSlot { // it may have come back, live or dead
			fn(Change{Key: name, Deleted: true})
		}
	}
	for range min(len(d.slots), keys) {
		if told >= bytes {
			break
		}
		n := d.slots[0]
		d.slots = d.slots[1:]
		e := sh.Slabs.At(n)
		e.SetInfo(table.FlagJournaled, 0) // before the state is read: a call without the lock changes that first
		if e.List() != table.NoList {
			e.Settle()
			told += sh.CostBytes(n, e)
			st := sh.full(n, e)
			if st.Limits != nil {
				sh.tell(e, *st.Limits)
			}
			fn(Change{Key: sh.Keys.View(e, &d.scratch), State: inWall(st, sh.Wall.Load())})
		} else {
			sh.Slabs.Told(n)
		}
	}
	return told
}

// collect takes over what a shard has noted for the step.
func (d *Teller) collect(j *journal, fn func(Change)) {
	d.began = true
	if d.step >= len(d.All) {
		if cap(d.list) > mostSpare {
			d.list = nil
		}
		d.list, j.changed = j.changed, d.list[:0]
		d.slots = d.list
	}
	for key := range j.removed {
		d.removed = append(d.removed, key)
	}
	if j.lost {
		fn(Change{Lost: true})
	}
	j.removed, j.bytes, j.lost = nil, 0, false
}

// Changed is about how many changes are still to be told: of slots, and of removed keys.
func (d *Teller) Changed() (n int) {
	for i := range d.All {
		sh := &d.All[i]
		if sh.Journal == nil {
			return 0
		}
		sh.Mu.Lock()
		n += len(sh.Journal.changed) + len(sh.Journal.removed)
		sh.Unlock()
	}
	return n
}
