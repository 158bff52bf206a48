package store

import "math"

const (
	never  = math.MaxUint64 // an end that no int64 instant reaches
	noSlot = math.MaxUint32 // the densePos of a slot that has left its shard
)

// slot is a key and its state, and where it stands in the shard's structures. 64 bytes: one more would make it 80, the
// next size the allocator has.
type slot struct {
	key        string
	tat        uint64
	expiryNS   int64
	touchedNS  int64  // last use, for OBJECT IDLETIME
	boundNS    uint64 // its place in the heap: never later than endNS
	densePos   uint32
	heapPos    uint32
	journalPos uint32 // place in the journal + 1, 0: not marked
	spent      bool   // its TAT had passed already when it was put
}

func (e *slot) state() State { return State{TAT: e.tat, ExpiryNS: e.expiryNS} }

// endNS is the first instant at which the slot is dead.
func (e *slot) endNS() uint64 {
	end := e.tat
	if e.spent {
		end = never
	}
	if e.expiryNS > 0 {
		end = min(end, uint64(e.expiryNS))
	}
	return end
}

func (e *slot) dead(nowNS int64) bool { return e.endNS() <= uint64(nowNS) }
