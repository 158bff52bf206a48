package shard

import (
	"sync/atomic"

	"celld/store"
	"celld/store/memory/table"
)

// room is how much all shards hold together, and how much they may. Room for a key and its limits is claimed before they are stored, and
// released after they are gone: so the store never holds more than is allowed. Both happen under a shard's lock, so during a Flush only
// Prepaid holds room that no key uses.
type room struct {
	_                 [64]byte // each new key changes the next line, and all calls read what stands before and after it
	Keys, Bytes       atomic.Int64
	_                 [64]byte
	maxKeys, maxBytes atomic.Int64 // in force now: while the store shrinks, on their way down to the wanted ones
	NoEviction        atomic.Bool
	idle              atomic.Int64 // bytes of places in slabs that no key uses, about

	refused, refusedKeys atomic.Int64 // changes, and those of them for which MaxKeys was the bound
}

// refuse counts a change for which there is no room, and returns its error.
func (r *room) refuse(n Need) error {
	r.refused.Add(1)
	if n.keys > 0 && r.Keys.Load()+n.keys > r.maxKeys.Load() {
		r.refusedKeys.Add(1)
		return store.ErrFullOfKeys
	}
	return store.ErrFull
}

// Need is what a change takes of the room.
type Need struct{ keys, Bytes int64 }

// NewKey is what a key of that length needs.
func NewKey(length int) Need { return Need{1, table.CostBytes(length)} }

// claim takes the room, or none of it.
func (r *room) claim(n Need) bool {
	if !addUpTo(&r.Keys, n.keys, r.maxKeys.Load()) {
		return false
	}
	if limit := r.maxBytes.Load(); limit == 0 {
		r.Bytes.Add(n.Bytes)
	} else if !addUpTo(&r.Bytes, n.Bytes, limit-r.tooIdle(limit, n)) {
		r.Keys.Add(-n.keys)
		return false
	}
	return true
}

// idleAllowed is how much may be idle beside maxBytes, and an eighth of that: some slabs in each shard are.
const idleAllowed = 4 << 20

// tooIdle is how much less than maxBytes keys may take, because idle places in slabs take it. So a client gains no memory by leaving one
// key in each slab. A store without keys takes any key that fits.
func (r *room) tooIdle(limit int64, n Need) int64 {
	if r.Keys.Load() <= n.keys {
		return 0
	}
	return max(0, r.idle.Load()-limit/8-idleAllowed)
}

// addUpTo adds unless that would be too much. To add nothing is never too much: a limit may be lowered below what is held.
func addUpTo(n *atomic.Int64, delta, limit int64) bool {
	for delta > 0 {
		old := n.Load()
		if old+delta > limit {
			return false
		}
		if n.CompareAndSwap(old, old+delta) {
			return true
		}
	}
	return true
}

func (r *room) release(n Need) {
	r.Bytes.Add(-n.Bytes)
	r.Keys.Add(-n.keys)
}

// clear is for Flush, which holds all locks.
func (r *room) clear() {
	r.Keys.Store(0)
	r.Bytes.Store(0)
}

// mostKeys is how many keys of some length there is room for.
func (r *room) mostKeys() int64 {
	keys := r.maxKeys.Load()
	if bytes := r.maxBytes.Load(); bytes > 0 {
		keys = min(keys, bytes/table.CostBytes(table.InlineKey))
	}
	return keys
}

// tooLarge reports what does not fit even when nothing else is held.
func (r *room) tooLarge(n Need) bool {
	limit := r.maxBytes.Load()
	return n.keys > r.maxKeys.Load() || limit > 0 && n.Bytes > limit
}

// over reports that more is held than the limits in force allow.
func (r *room) over() bool {
	limit := r.maxBytes.Load()
	return r.Keys.Load() > r.maxKeys.Load() || limit > 0 && r.Bytes.Load() > limit
}
