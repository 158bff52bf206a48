package store

import "sync/atomic"

// OverheadBytes is what a key takes beside its own bytes, by the estimate of MaxBytes and Stats.Bytes.
//
// Measured (BenchmarkHeap, amd64) it is 43 for keys of 16 bytes and 51 for 40, with 1,000,000 keys as with 10,000,000:
// 48 the slot, which holds 16 bytes of key, 10 to 11 the index, and 32 each tail of a longer key, which holds 28. For
// longer keys it depends on how full their last tail is: 74 for 17 bytes and 86 for 100. The constant lies in between, so
// that no length takes a quarter more than its estimate.
const OverheadBytes = 56

func costBytes(keyLen int) int64 { return int64(keyLen) + OverheadBytes }

// room is how much is held and how much may be, for all shards together. A key's room is claimed before the key is
// linked and released after it is unlinked, under its shard's lock, so that no more is ever held than was allowed.
type room struct {
	keys, bytes           atomic.Int64
	spentKeys, spentBytes atomic.Int64 // of them, what spent keys take
	maxKeys, maxBytes     atomic.Int64 // in force now: while the store shrinks, on their way down to the wanted ones
	noEviction            atomic.Bool
}

// claim takes the room of one key that costs so many bytes, or none.
func (r *room) claim(cost int64) bool {
	if !addUpTo(&r.keys, 1, r.maxKeys.Load()) {
		return false
	}
	if limit := r.maxBytes.Load(); limit == 0 {
		r.bytes.Add(cost)
	} else if !addUpTo(&r.bytes, cost, limit) {
		r.keys.Add(-1)
		return false
	}
	return true
}

func addUpTo(n *atomic.Int64, delta, limit int64) bool {
	for {
		old := n.Load()
		if old+delta > limit {
			return false
		}
		if n.CompareAndSwap(old, old+delta) {
			return true
		}
	}
}

func (r *room) release(cost int64) {
	r.bytes.Add(-cost)
	r.keys.Add(-1)
}

func (r *room) countSpent(keys, bytes int64) {
	r.spentKeys.Add(keys)
	r.spentBytes.Add(bytes)
}

// clear is for Flush, which holds all locks.
func (r *room) clear() {
	for _, n := range []*atomic.Int64{&r.keys, &r.bytes, &r.spentKeys, &r.spentBytes} {
		n.Store(0)
	}
}

// fits reports whether so many keys more that cost so many bytes would leave the limits alone.
func (r *room) fits(keys, cost int64) bool {
	limit := r.maxBytes.Load()
	return r.keys.Load()+keys <= r.maxKeys.Load() && (limit == 0 || r.bytes.Load()+cost <= limit)
}

// tooLarge reports a key that does not fit even when nothing else is held.
func (r *room) tooLarge(cost int64) bool {
	limit := r.maxBytes.Load()
	return limit > 0 && cost > limit
}

// spentSuffice reports whether a key fits once all spent ones are gone. Without eviction these are the only ones that
// may go, and they must not go in vain.
func (r *room) spentSuffice(cost int64) bool {
	limit := r.maxBytes.Load()
	return r.keys.Load()-r.spentKeys.Load() < r.maxKeys.Load() &&
		(limit == 0 || r.bytes.Load()-r.spentBytes.Load()+cost <= limit)
}

// over reports that more is held than the limits in force allow.
func (r *room) over() bool {
	limit := r.maxBytes.Load()
	return r.keys.Load() > r.maxKeys.Load() || limit > 0 && r.bytes.Load() > limit
}
