package shard

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
	"celld/store/waiting"
)

const (
	// PerLock is the most keys that are handled under one lock. Sweeping so many of a million takes 0.1 ms.
	PerLock = store.MaxTakes

	// bytesPerLock is the most bytes of keys that are told under one lock, by the estimate of MaxBytes. Without it, 64 keys of
	// 60 KB would make the reader's buffer grow to 4 MB.
	bytesPerLock = 1 << 20
)

// Shard holds the keys whose hash leads to it. Mu guards all except the atomics.
type Shard struct {
	Mu sync.Mutex
	// Odd while the shard is locked: a call without the lock that sees it odd, or changed, takes the lock. See lockfree.go.
	Version atomic.Uint64
	watches atomic.Int64 // len(watched)
	noteNS  atomic.Int64 // see noteMost
	table.Table
	seed     maphash.Seed
	room     *room
	Journal  *journal // nil: off
	policies *policy.Set
	watched  map[string]*watchedKey
	waited   waiting.Lines[*Line] // outlives Flush
	LatestNS int64                // the latest time that a call has given, for Shrink, which gets none
	Counters counters
	changes  int64 // ever made
	idle     int64 // idleBytes, as room.idle has it

	publishes uint32

	// Written under Mu and read without it: an insert into a full store learns from them which shard has a key to remove.
	Held      atomic.Int64  // slots in use
	NextEndNS atomic.Uint64 // no key is dead before; Never if there is none

	_ [64]byte // keeps the next shard's lock out of this one's cache line
}

// ShardSet is a set of shards: a bit for each, by its index.
type ShardSet uint64

// counters are the shard's part of Stats, and mean the same.
type counters struct{ expired, Evicted, hits, misses int64 }

func (sh *Shard) CountLookup(found *table.Slot) {
	if found != nil {
		sh.Counters.hits++
	} else {
		sh.Counters.misses++
	}
}

// Lock keeps all others out of the shard, those that take no lock too.
func (sh *Shard) Lock(nowNS int64) {
	sh.Mu.Lock()
	sh.Version.Add(1)
	sh.LatestNS = max(sh.LatestNS, nowNS)
}

// Unlock ends Lock, or a lock of Mu alone.
func (sh *Shard) Unlock() {
	if sh.Version.Load()&1 != 0 {
		sh.Version.Add(1)
	}
	sh.Mu.Unlock()
}

// clear makes the shard's table an empty one.
func (sh *Shard) clear() {
	sh.Table.Clear()
	sh.noteIdle()
	sh.publish()
}

func (sh *Shard) publish() {
	sh.Held.Store(sh.InUse)
	if sh.publishes++; sh.publishes%8 == 0 { // adding up takes 10 ns
		sh.noteIdle()
	}
	if next := sh.Wheel.NextNS(); next != sh.NextEndNS.Load() {
		sh.NextEndNS.Store(next)
	}
}

func (sh *Shard) noteIdle() {
	if idle := sh.IdleBytes(); idle-sh.idle > idleStep || sh.idle-idle > idleStep {
		sh.room.idle.Add(idle - sh.idle)
		sh.idle = idle
	}
}

// idleStep is by how many bytes a shard's idle memory changes before it is counted in room.
const idleStep = 64 << 10

// Find returns the live slot of the key and touches it, or NoSlot and nil. It removes a dead one. From a live one it purges the limits of
// policies that are gone, and gives back what expired leases held.
func (sh *Shard) Find(hash uint64, key []byte, a store.Access) (uint32, *table.Slot) {
	n, e := sh.Meet(hash, key, a)
	if e != nil && !(sh.purge(n, e, a.NowNS) && sh.ExpireLeases(n, e, a.NowNS)) {
		return table.NoSlot, nil
	}
	return n, e
}

// Meet is Find that keeps limits of policies that are gone, and expired leases.
func (sh *Shard) Meet(hash uint64, key []byte, a store.Access) (uint32, *table.Slot) {
	n, e := sh.Slot(hash, key)
	switch {
	case n == table.NoSlot:
		return table.NoSlot, nil
	case sh.Dead(n, e, a.NowNS):
		sh.expire(n, e)
		return table.NoSlot, nil
	case !a.NoTouch:
		sh.SetTouched(e, a.NowNS)
		sh.Lists.Touch(&sh.Slabs, n, e)
	}
	return n, e
}

// Link adds a key that is not there. The caller has claimed room for it and its limits.
func (sh *Shard) Link(hash uint64, key []byte, st store.Value, nowNS int64) (uint32, *table.Slot) {
	n, e := sh.Slabs.Alloc()
	sh.Begin(n, e, key, nowNS)
	sh.setState(n, e, st)
	sh.Wheel.Link(&sh.Slabs, n, e, sh.EndNS(n, e))
	sh.Index.Insert(table.TagOfHash(hash), n)
	sh.InUse++
	sh.changes++
	sh.publish()
	sh.Journal.put(n, e, key)
	sh.bumpWatched(key)
	if len(sh.waited.OfKey) != 0 && sh.waited.OfKey[string(key)] != nil {
		e.SetInfo(table.FlagWaited, table.FlagWaited)
	}
	return n, e
}

// put gives a linked slot the state that an allowed call leaves. If the end comes later, the slot keeps its place in the wheel: so a call
// on a key that is there does not touch the wheel.
func (sh *Shard) put(n uint32, e *table.Slot, tat uint64, key []byte) {
	if e.Has(table.FlagsOfState) || tat < e.SettledTAT() {
		sh.set(n, e, store.Value{TAT: tat}, key)
		return
	}
	e.TAT.Store(tat)
	sh.changes++
	sh.Journal.Mark(n, e)
	sh.bumpWatched(key)
}

// PutEnd is put for a slot whose limits have changed already. It drops the expiry that an EXPIRE has set.
func (sh *Shard) PutEnd(n uint32, e *table.Slot, end uint64, key []byte) {
	if e.Has(table.FlagsOfState) {
		sh.clearExpiry(n, e)
		sh.untell(e) // a reader that reads on after that expiry has dropped the key
	}
	sh.MoveEnd(n, e, end, key)
}

// MoveEnd is PutEnd that leaves the expiry as it is.
func (sh *Shard) MoveEnd(n uint32, e *table.Slot, end uint64, key []byte) {
	was := sh.EndNS(n, e)
	e.TAT.Store(end)
	if end := sh.EndNS(n, e); end < was {
		sh.Wheel.Move(&sh.Slabs, n, e, end)
		sh.publish()
	}
	sh.changes++
	sh.Journal.Mark(n, e)
	sh.bumpWatched(key)
}

// set gives a linked slot another state. The caller has claimed the room that its limits need more.
func (sh *Shard) set(n uint32, e *table.Slot, st store.Value, key []byte) {
	was := sh.EndNS(n, e)
	sh.clearExpiry(n, e)
	bytes := sh.LimitBytes(e)
	sh.setState(n, e, st)
	sh.ReleaseBytes(bytes - sh.LimitBytes(e))
	if end := sh.EndNS(n, e); end < was {
		sh.Wheel.Move(&sh.Slabs, n, e, end)
	}
	sh.changes++
	sh.publish()
	sh.Journal.Mark(n, e)
	sh.bumpWatched(key)
	if e.Has(table.FlagWaited) {
		sh.PokeKey(key, sh.LatestNS)
	}
}

func (sh *Shard) setState(n uint32, e *table.Slot, st store.Value) {
	e.PutValue(st)
	switch {
	case st.Limits != nil:
		sh.setLimits(e, *st.Limits)
	case !st.HoldsLimits:
		sh.DropLimits(e)
	}
	switch st.ExpiryNS {
	case store.AtTAT:
	case store.NoExpiry:
		e.SetInfo(table.FlagNoExpiry, table.FlagNoExpiry)
		sh.NoExpiry++
	default:
		e.SetInfo(table.FlagExpiry, table.FlagExpiry)
		sh.Slabs.SetExpiry(n, st.ExpiryNS)
	}
}

func (sh *Shard) clearExpiry(n uint32, e *table.Slot) {
	if e.Has(table.FlagNoExpiry) {
		sh.NoExpiry--
	}
	e.SetInfo(table.FlagsOfState, 0)
}

// unlink takes a slot out of the shard. Its room stays claimed.
func (sh *Shard) unlink(n uint32, e *table.Slot, expired bool) {
	var scratch [table.HugeKey]byte
	key := sh.Keys.View(e, &scratch)
	sh.Journal.remove(e, key, expired)
	if e.Has(table.FlagWaited) {
		sh.letGo(n, e, key, expired)
	}
	sh.Index.Remove(table.TagOfHash(maphash.Bytes(sh.seed, key)), n)
	sh.Lists.Pull(&sh.Slabs, e)
	sh.clearExpiry(n, e)
	sh.Wheel.Unlink(&sh.Slabs, e)
	sh.Keys.Free(e)
	sh.DropLimits(e)
	sh.Slabs.Free(n, e)
	if sh.InUse--; sh.InUse%PerLock == 0 {
		sh.Index.Shrink(sh.InUse)
	}
	if !expired {
		sh.changes++
	}
	sh.publish()
}

// letGo pokes the lines of a key that goes.
func (sh *Shard) letGo(n uint32, e *table.Slot, key []byte, expired bool) {
	at := sh.LatestNS
	if expired {
		at = int64(min(sh.EndNS(n, e), uint64(at)))
	}
	sh.PokeKey(key, at)
	e.SetInfo(table.FlagWaited, 0)
}

// ReleaseBytes gives back bytes that have become free. It ignores a negative number, for which room was claimed before.
func (sh *Shard) ReleaseBytes(freed int64) {
	if freed > 0 {
		sh.room.Bytes.Add(-freed)
	}
}

// drop takes a slot out and gives its room back.
func (sh *Shard) drop(n uint32, e *table.Slot, expired bool) {
	cost := sh.CostBytes(n, e)
	sh.unlink(n, e, expired)
	sh.room.release(Need{1, cost})
}

// Remove removes a slot that may be live.
func (sh *Shard) Remove(n uint32, e *table.Slot) { sh.drop(n, e, false) }

// expire removes a dead slot.
func (sh *Shard) expire(n uint32, e *table.Slot) {
	sh.drop(n, e, true)
	sh.Counters.expired++
}

// watchedKey counts the puts of a key that somebody watches. Counting puts is enough: a look-up sees that a key is gone, and one that came
// back was put. So deletion, eviction, expiry and Flush need not tell.
type watchedKey struct {
	puts     uint64
	watchers int
}

func (sh *Shard) bumpWatched(key []byte) {
	if len(sh.watched) != 0 {
		sh.bump(key)
	}
}

func (sh *Shard) bump(key []byte) {
	if k := sh.watched[string(key)]; k != nil {
		k.puts++
	}
}
