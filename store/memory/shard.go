package memory

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"celld/store"
	"celld/store/policy"
)

// shard holds the keys whose hash leads to it. All but the atomics is guarded by mu.
type shard struct {
	mu sync.Mutex
	// Odd while the shard is locked: a call without the lock that sees it odd, or changed, takes the lock. See free.go.
	version atomic.Uint64
	watches atomic.Int64 // len(watched)
	noteNS  atomic.Int64 // see noteMost
	table
	seed     maphash.Seed
	room     *room
	journal  *journal // nil: off
	policies *policy.Set
	watched  map[string]*watchedKey
	waited   map[string][]*queue   // by key. Outlives Flush
	named    map[namedWait]*waiter // who waits under the name of a lease, and can be joined
	latestNS int64                 // the latest time that a call has given, for Shrink, which is given none
	counters counters
	changes  int64 // ever made
	idle     int64 // idleBytes, as room.idle has it

	// Written under mu and read without it: an insert into a full store learns from them which shard has a key to remove.
	held      atomic.Int64  // slots in use
	spentHeld atomic.Int64  // of them spent
	nextEndNS atomic.Uint64 // the earliest bound of ends, or never

	_ [64]byte // keeps the next shard's lock out of this one's cache line
}

// table is the part of a shard that Flush drops. An empty one has no slab and no chunk.
type table struct {
	index    index
	slabs    slabs
	keys     keys
	tallies  tallies
	lists    lists
	ends     wheel
	wall     *wallAhead
	expiries map[uint32]int64 // by slot, the ExpiryNS that are instants, in wall time
	noExpiry int64            // slots whose ExpiryNS is NoExpiry
	inUse    int64
}

// counters are the shard's part of Stats, and mean the same.
type counters struct{ expired, evicted, hits, misses int64 }

// lock keeps all others out of the shard, those that take no lock too.
func (sh *shard) lock(nowNS int64) {
	sh.mu.Lock()
	sh.version.Add(1)
	sh.latestNS = max(sh.latestNS, nowNS)
}

// unlock ends a lock, or one of mu alone.
func (sh *shard) unlock() {
	if sh.version.Load()&1 != 0 {
		sh.version.Add(1)
	}
	sh.mu.Unlock()
}

// clear makes the shard's table an empty one.
func (sh *shard) clear() {
	sh.index.drop()
	sh.slabs.drop()
	sh.keys.drop()
	sh.tallies.drop()
	sh.lists, sh.ends = lists{}, newWheel()
	sh.expiries, sh.noExpiry, sh.inUse = nil, 0, 0
	sh.publish()
}

func (sh *shard) publish() {
	sh.held.Store(sh.inUse)
	if idle := sh.idleBytes(); idle-sh.idle > idleStep || sh.idle-idle > idleStep {
		sh.room.idle.Add(idle - sh.idle)
		sh.idle = idle
	}
	if spent := int64(sh.lists.of(spentList).keys); spent != sh.spentHeld.Load() {
		sh.spentHeld.Store(spent)
	}
	if next := sh.ends.nextNS(); next != sh.nextEndNS.Load() {
		sh.nextEndNS.Store(next)
	}
}

// idleStep is by how many bytes a shard's idle memory changes before it is counted in room.
const idleStep = 64 << 10

// idleBytes is what places take that no key uses. When a key goes, it must grow by less than the estimate of the key, so that
// fewer keys always leave more room. So a tail of 32 bytes counts as 24: it has 28 bytes of a key.
func (t *table) idleBytes() int64 {
	return int64(t.slabs.places.idle())*48 + int64(t.keys.tails.places.idle())*24 +
		int64(t.tallies.places.idle())*TallyBytes + int64(len(t.tallies.freeRings))*RingBytes
}

func tagOfHash(hash uint64) uint32 { return uint32(hash >> 32) }

// slot returns the slot of the key, live or dead, or noSlot.
func (t *table) slot(hash uint64, key []byte) (uint32, *slot) {
	for p := t.index.find(tagOfHash(hash)); ; {
		n := p.next()
		if n == noSlot {
			return noSlot, nil
		}
		if e := t.slabs.at(n); t.keys.is(e, key) || len(key) >= hugeKey && t.keys.isHuge(n, e, key) {
			return n, e
		}
	}
}

// find returns the live slot of the key and touches it, or noSlot and nil. It removes a dead one, and what a live one holds of
// policies that are gone, and gives back what it holds of leases that have ended.
func (sh *shard) find(hash uint64, key []byte, a store.Access) (uint32, *slot) {
	n, e := sh.meet(hash, key, a)
	if e != nil && !(sh.prune(n, e, a.NowNS) && sh.giveDue(n, e, a.NowNS)) {
		return noSlot, nil
	}
	return n, e
}

// meet is find, but it keeps what belongs to policies that are gone, and leases that have ended.
func (sh *shard) meet(hash uint64, key []byte, a store.Access) (uint32, *slot) {
	n, e := sh.slot(hash, key)
	switch {
	case n == noSlot:
		return noSlot, nil
	case sh.dead(n, e, a.NowNS):
		sh.expire(n, e)
		return noSlot, nil
	case !a.NoTouch:
		sh.setTouched(e, a.NowNS)
		sh.lists.touch(&sh.slabs, n, e)
	}
	return n, e
}

// link adds a key that is not there. The caller has claimed room for it and its limits.
func (sh *shard) link(hash uint64, key []byte, st store.Value, spent bool, nowNS int64) (uint32, *slot) {
	n, e := sh.slabs.take()
	name := probation
	if spent {
		name = spentList
	}
	e.setInfo(keyLenMask|touchedMask|flagList, sh.keys.set(n, e, key)|uint64(nowNS)>>touchedUnit|uint64(name)*flagProbation)
	if spent {
		sh.room.countSpent(1, costBytes(len(key)))
	}
	sh.lists.push(&sh.slabs, name, n, e)
	sh.setState(n, e, st)
	sh.ends.link(&sh.slabs, n, e, sh.endNS(n, e))
	sh.index.insert(tagOfHash(hash), n)
	sh.inUse++
	sh.changes++
	sh.publish()
	sh.journal.put(n, e, key)
	sh.bumpWatched(key)
	if len(sh.waited) != 0 && sh.waited[string(key)] != nil {
		e.setInfo(flagWaited, flagWaited)
	}
	return n, e
}

// put gives a linked slot the state that an allowed call leaves. A later end keeps the slot's place in the wheel, so a call on
// a key that is there does not touch the wheel.
func (sh *shard) put(n uint32, e *slot, tat uint64, key []byte) {
	if e.has(flagsOfState) || e.spent() || tat < e.held() {
		sh.set(n, e, store.Value{TAT: tat}, false, key)
		return
	}
	e.tat.Store(tat)
	sh.changes++
	sh.journal.mark(n, e)
	sh.bumpWatched(key)
}

// putEnd is put for a slot whose limits have changed already. It ends an EXPIRE.
func (sh *shard) putEnd(n uint32, e *slot, end uint64, key []byte) {
	if e.has(flagsOfState) {
		sh.clearExpiry(n, e)
		sh.untell(e) // whoever reads what was told after that expiry does not have the key any more
	}
	sh.moveEnd(n, e, end, key)
}

// moveEnd is putEnd that leaves the expiry as it is.
func (sh *shard) moveEnd(n uint32, e *slot, end uint64, key []byte) {
	was := sh.endNS(n, e)
	e.tat.Store(end)
	if end := sh.endNS(n, e); end < was {
		sh.ends.move(&sh.slabs, n, e, end)
		sh.publish()
	}
	sh.changes++
	sh.journal.mark(n, e)
	sh.bumpWatched(key)
}

// set gives a linked slot another state. The caller has claimed room for what its limits take more.
func (sh *shard) set(n uint32, e *slot, st store.Value, spent bool, key []byte) {
	was := sh.endNS(n, e)
	sh.clearExpiry(n, e)
	bytes := sh.limitBytes(e)
	sh.setState(n, e, st)
	sh.releaseBytes(bytes - sh.limitBytes(e))
	if e.spent() != spent {
		sh.setSpent(n, e, spent, len(key))
	}
	if end := sh.endNS(n, e); end < was {
		sh.ends.move(&sh.slabs, n, e, end)
	}
	sh.changes++
	sh.publish()
	sh.journal.mark(n, e)
	sh.bumpWatched(key)
	if e.has(flagWaited) {
		sh.pokeKey(key, sh.latestNS)
	}
}

// setSpent moves a slot between the spent and the others. One that is no longer spent goes on probation, as a new one does.
func (sh *shard) setSpent(n uint32, e *slot, spent bool, keyLen int) {
	sh.lists.pull(&sh.slabs, e)
	if spent {
		sh.lists.push(&sh.slabs, spentList, n, e)
		sh.room.countSpent(1, costBytes(keyLen))
	} else {
		sh.lists.push(&sh.slabs, probation, n, e)
		sh.room.countSpent(-1, -costBytes(keyLen))
	}
}

func (sh *shard) setState(n uint32, e *slot, st store.Value) {
	e.tat.Store(st.TAT)
	switch {
	case st.Limits != nil:
		sh.setLimits(e, *st.Limits)
	case st.Kind == store.HoldsTAT:
		sh.dropTallies(e)
	}
	switch st.ExpiryNS {
	case store.AtTAT:
	case store.NoExpiry:
		e.setInfo(flagsOfState, flagNoExpiry)
		sh.noExpiry++
	default:
		e.setInfo(flagsOfState, flagExpiry)
		if sh.expiries == nil {
			sh.expiries = make(map[uint32]int64)
		}
		sh.expiries[n] = st.ExpiryNS
	}
}

func (sh *shard) clearExpiry(n uint32, e *slot) {
	if e.has(flagNoExpiry) {
		sh.noExpiry--
	}
	if e.has(flagExpiry) {
		delete(sh.expiries, n)
	}
	e.setInfo(flagsOfState, 0)
}

// unlink takes a slot out of the shard. Its room stays claimed.
func (sh *shard) unlink(n uint32, e *slot, expired bool) {
	var scratch [hugeKey]byte
	key := sh.keys.view(n, e, &scratch)
	sh.journal.remove(e, key, expired)
	if e.has(flagWaited) {
		sh.letGo(n, e, key, expired)
	}
	if e.spent() {
		sh.room.countSpent(-1, -costBytes(len(key)))
	}
	sh.index.remove(tagOfHash(maphash.Bytes(sh.seed, key)), n)
	sh.lists.pull(&sh.slabs, e)
	sh.clearExpiry(n, e)
	sh.ends.unlink(&sh.slabs, e)
	sh.keys.free(n, e)
	sh.dropTallies(e)
	sh.slabs.put(n, e)
	sh.inUse--
	if !expired {
		sh.changes++
	}
	sh.publish()
}

// letGo has those looked at again who wait for a key that goes.
func (sh *shard) letGo(n uint32, e *slot, key []byte, expired bool) {
	at := sh.latestNS
	if expired {
		at = int64(min(sh.endNS(n, e), uint64(at)))
	}
	sh.pokeKey(key, at)
	e.setInfo(flagWaited, 0)
}

// releaseBytes gives back bytes that have become free. It ignores a negative number, for which room was claimed before.
func (sh *shard) releaseBytes(freed int64) {
	if freed > 0 {
		sh.room.bytes.Add(-freed)
	}
}

// drop takes a slot out and gives its room back.
func (sh *shard) drop(n uint32, e *slot, expired bool) {
	cost := sh.costBytes(n, e)
	sh.unlink(n, e, expired)
	sh.room.release(need{1, cost})
}

// remove removes a slot that may be live.
func (sh *shard) remove(n uint32, e *slot) { sh.drop(n, e, false) }

// expire removes a dead slot.
func (sh *shard) expire(n uint32, e *slot) {
	sh.drop(n, e, true)
	sh.counters.expired++
}
