package store

import (
	"container/heap"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// shard holds the keys whose hash leads to it. All but the atomics is guarded by mu.
type shard struct {
	mu sync.Mutex
	table
	room     *room
	journal  *journal // nil: off
	watched  map[string]*watchedKey
	latestNS int64 // the latest time a call has given, for the resizing that is given none
	counters counters

	// Published under mu, read without: an insert at capacity learns from them which shard has a key to give.
	held      atomic.Int64  // slots
	spentHeld atomic.Int64  // of them spent
	nextEndNS atomic.Uint64 // the earliest bound in ends, or never

	_ [64]byte // keeps the next shard's lock out of this one's cache line
}

// table is the part of a shard that Flush drops.
type table struct {
	lru        *simplelru.LRU[string, *slot]
	spent      *simplelru.LRU[*slot, struct{}]
	dense      []*slot
	ends       endHeap
	withExpiry int64 // slots whose ExpiryNS is not NoExpiry
}

// counters are the shard's part of Stats, and mean the same.
type counters struct{ expired, evicted, hits, misses int64 }

func (sh *shard) lock(nowNS int64) {
	sh.mu.Lock()
	sh.latestNS = max(sh.latestNS, nowNS)
}

// clear makes the shard's table an empty one.
func (sh *shard) clear() {
	sh.table = table{lru: newLRU[string, *slot](), spent: newLRU[*slot, struct{}]()}
	sh.publish()
}

// newLRU returns an LRU without a size of its own: the room is the store's, and so is the choice of whom to evict.
func newLRU[K comparable, V any]() *simplelru.LRU[K, V] {
	lru, _ := simplelru.NewLRU[K, V](math.MaxInt, nil) // its only error is a size below 1
	return lru
}

func (sh *shard) publish() {
	sh.held.Store(int64(len(sh.dense)))
	sh.spentHeld.Store(int64(sh.spent.Len()))
	sh.nextEndNS.Store(sh.ends.nextNS())
}

// find returns the live slot of the key and touches it, or nil. A dead one is removed in passing.
func (sh *shard) find(key []byte, a Access) *slot {
	// A view of the caller's bytes, so that finding a key allocates nothing. The look-ups do not keep it.
	view := unsafe.String(unsafe.SliceData(key), len(key))
	var e *slot
	if a.NoTouch {
		e, _ = sh.lru.Peek(view)
	} else {
		e, _ = sh.lru.Get(view)
	}
	switch {
	case e == nil:
		return nil
	case e.dead(a.NowNS):
		sh.expire(e)
		return nil
	case !a.NoTouch:
		e.touchedNS = a.NowNS
		if e.spent {
			sh.spent.Get(e)
		}
	}
	return e
}

// link adds a key that is not there. Its room has been claimed.
func (sh *shard) link(key string, st State, spent bool, nowNS int64) {
	e := &slot{key: key, tat: st.TAT, expiryNS: st.ExpiryNS, touchedNS: nowNS, densePos: uint32(len(sh.dense))}
	sh.lru.Add(key, e)
	sh.dense = append(sh.dense, e)
	sh.countExpiry(e, 1)
	sh.setSpent(e, spent)
	e.boundNS = e.endNS()
	heap.Push(&sh.ends, e)
	sh.publish()
	sh.journal.put(e)
	sh.bumpWatched(key)
}

// set gives a linked slot another state. A later end leaves its place in the heap, which is what keeps a call on a key
// that is there free of the heap; an earlier one is put right at once.
func (sh *shard) set(e *slot, st State, spent bool) {
	sh.countExpiry(e, -1)
	e.tat, e.expiryNS = st.TAT, st.ExpiryNS
	sh.countExpiry(e, 1)
	if e.spent != spent {
		sh.setSpent(e, spent)
		sh.publish()
	}
	if end := e.endNS(); end < e.boundNS {
		e.boundNS = end
		heap.Fix(&sh.ends, int(e.heapPos))
		sh.publish()
	}
	sh.journal.mark(e)
	sh.bumpWatched(e.key)
}

// unlink takes a slot out of the shard and leaves its room claimed.
func (sh *shard) unlink(e *slot) {
	sh.lru.Remove(e.key)
	sh.setSpent(e, false)
	sh.countExpiry(e, -1)
	last := len(sh.dense) - 1
	moved := sh.dense[last]
	sh.dense[e.densePos], sh.dense[last] = moved, nil
	sh.dense = sh.dense[:last]
	moved.densePos = e.densePos
	e.densePos = noSlot
	heap.Remove(&sh.ends, int(e.heapPos))
	sh.publish()
	sh.journal.remove(e)
}

// remove takes a slot out and gives its room back.
func (sh *shard) remove(e *slot) {
	sh.unlink(e)
	sh.room.release(costBytes(len(e.key)))
}

// expire removes a dead slot.
func (sh *shard) expire(e *slot) {
	sh.remove(e)
	sh.counters.expired++
}

func (sh *shard) setSpent(e *slot, spent bool) {
	if e.spent == spent {
		return
	}
	e.spent = spent
	if spent {
		sh.spent.Add(e, struct{}{})
		sh.room.countSpent(1, costBytes(len(e.key)))
	} else {
		sh.spent.Remove(e)
		sh.room.countSpent(-1, -costBytes(len(e.key)))
	}
}

func (sh *shard) countExpiry(e *slot, n int64) {
	if e.expiryNS != NoExpiry {
		sh.withExpiry += n
	}
}
