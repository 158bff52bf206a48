package shard

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// A call on a key that is there takes no lock. A lock would move from core to core with each call, and two cores would answer no more
// than one. A call that is denied writes nothing at all; one that passes writes to the key's slot only.
//
//	version ── even ──▶ find the slot, read its state ──▶ decide ──▶ version as before? ──▶ denied: that is the answer
//	                                                           └──▶ FlagBusy by compare-and-swap, version as before?
//	                                                                  ──▶ new state, FlagBusy off: passed
//
// Whoever locks the shard makes its version odd first, and reads a state only once nobody is busy with it (Slot.Settle). So a
// call without the lock sees either all of what was done under it or nothing. If the version is odd or has changed, the call has changed
// nothing and takes the lock itself. So do all rare calls: on keys that come or end, on limits that have an expiry of their own, on states
// that end sooner than before or have a ring, counts that change their expiry, and calls that fail.

// noteMost is how long a use of a key may go unnoted in the order of use: a second, which is also the resolution of Redis's LRU clock.
// So a key in constant use is moved once a second. In a smaller store that is too long: a flood of new keys may fill all of it meanwhile,
// and push out a key in use. So the time is noteOfKey for each key that there is room for: 0.1 s for 10,000. A store for exactKeys or
// fewer notes each use.
const (
	noteMost  = 1 << 30
	noteOfKey = 10_000
	exactKeys = 1 << 12
)

// LockFree is a call without the lock.
type LockFree struct {
	Store   *Shards
	guess   *table.Slot // that seems to be the key's, or nil
	flushes uint64      // before it was guessed
	sh      *Shard
	e       *table.Slot
	version uint64
	info    table.Info // of e
	tat     uint64     // or the count
	Absent  bool       // there is no such key, at version
	pending bool       // there is something left to do under the lock: see done
	passed  bool
}

// GuessFrom takes the guess of a request's slot from what was prefetched; nil: nothing was.
func (f *LockFree) GuessFrom(b *Prefetch, i int) {
	if b != nil {
		f.guess, f.flushes = b.slots[i], b.flushes
	}
}

// look finds the key's slot, and reports whether a call may go on without the lock, for keys that have these of the flags that it looks at.
func (f *LockFree) look(sh *Shard, hash uint64, key []byte, at, flags uint64, a store.Access) bool {
	f.version, f.Absent = sh.Version.Load(), false
	if f.version&1 != 0 {
		return false
	}
	guess := f.guess
	if guess == nil || f.Store.flushes.Load() != f.flushes || !sh.Keys.Is(guess, key) { // A flush leaves the old slots as they were
		if guess = sh.Peek(hash, key); guess == nil {
			f.Absent = len(key) < table.HugeKey
			return false
		}
	}
	f.sh, f.e, f.info, f.passed = sh, guess, table.Info(guess.Info.Load()), false
	list := f.info.List()
	if uint64(f.info)&(table.FlagBusy|table.FlagLimits|table.FlagWaited|at) != flags || list == table.NoList {
		return false
	}
	f.tat = guess.TAT.Load()
	f.pending = !a.NoTouch && list == table.Probation
	return true
}

// lives is look for a key that lives as long as its TAT.
func (f *LockFree) lives(sh *Shard, hash uint64, key []byte, flags uint64, a store.Access) bool {
	return f.look(sh, hash, key, table.FlagsOfState, flags, a) && f.tat > uint64(a.NowNS)
}

// stillAbsent reports that there is no such key in the shard, which has been locked since look.
func (f *LockFree) stillAbsent(sh *Shard) bool { return f.Absent && sh.Version.Load() == f.version+1 }

// used notes when the key was last used.
func (f *LockFree) used(touchedNS int64, a store.Access) {
	f.pending = f.pending || !a.NoTouch && a.NowNS-touchedNS >= f.sh.noteNS.Load()
}

// valid reports that all that was read was there at one instant.
func (f *LockFree) valid() bool { return f.sh.Version.Load() == f.version }

// begin lets the caller alone change the state, until end. It returns false where anything but the state has changed.
func (f *LockFree) begin() bool {
	if !f.e.Info.CompareAndSwap(uint64(f.info), uint64(f.info|table.FlagBusy)) {
		return false
	}
	if !f.valid() {
		f.end()
		return false
	}
	return true
}

func (f *LockFree) end() { f.e.Info.And(^uint64(table.FlagBusy)) }

// changed is end after the state has changed.
func (f *LockFree) changed() {
	info := f.e.Info.And(^uint64(table.FlagBusy))
	f.passed = true
	f.pending = f.pending || f.sh.Journal != nil && info&table.FlagJournaled == 0 || f.sh.watches.Load() != 0
}

// Finish counts a call that has been decided, and does what is left to do.
func (f *LockFree) Finish(c *Counts, hash uint64, key []byte, a store.Access) {
	c.add(f)
	if f.pending {
		f.done(hash, key, a)
	}
}

// done notes under the lock that the key was used, and that it has changed.
func (f *LockFree) done(hash uint64, key []byte, a store.Access) {
	sh := f.sh
	sh.Mu.Lock()
	sh.LatestNS = max(sh.LatestNS, a.NowNS)
	if n, e := sh.Slot(hash, key); e != nil {
		if !a.NoTouch {
			sh.SetTouched(e, a.NowNS)
			sh.Lists.Touch(&sh.Slabs, n, e)
		}
		if f.passed {
			sh.Journal.Mark(n, e)
			sh.bumpWatched(key)
		}
	}
	sh.Mu.Unlock()
}

// tryThrottle decides on a request, if it can.
func (f *LockFree) tryThrottle(sh *Shard, r *store.Request, a store.Access) bool {
	if !f.lives(sh, r.Hash, r.Key, 0, a) {
		return false
	}
	next, d, err := r.Bucket.Throttle(f.tat, a.NowNS, r.Quantity)
	if err != nil {
		return false
	}
	if d.Limited || r.Quantity == 0 {
		if !f.valid() {
			return false
		}
	} else {
		if next < f.tat || !f.begin() {
			return false
		}
		if f.e.TAT.Load() != f.tat {
			f.end()
			return false
		}
		f.e.TAT.Store(next)
		f.changed()
	}
	setDecision(&r.Decision, &d)
	r.Err = nil
	f.used(f.info.TouchedNS(), a)
	return true
}

// TryTake decides on a request of one limit under a key that holds nothing else, if it can.
func (f *LockFree) TryTake(sh *Shard, r *store.TakeRequest, a store.Access) bool {
	c := &r.Calls[0]
	if !isPlain(r) || c.Limit.HasRing() || !f.lives(sh, r.Hash, c.Key, table.FlagLimits, a) {
		return false
	}
	p := sh.Limits.Peek(uint32(f.info))
	if p == nil || !p.Alone(c.Limit, c.PolicyID()) {
		return false
	}
	decided := false
	if c.Limit.IsBucket() {
		decided = f.takeWord(p, r, a.NowNS)
	} else {
		decided = f.takeWords(p, r, a.NowNS)
	}
	if !decided {
		return false
	}
	answerOne(r)
	f.used(p.TouchedNS.Load(), a)
	return true
}

// takeWord decides on a bucket. Its state is one word, so it can be read while others change it. A call that is denied does not write it.
func (f *LockFree) takeWord(p *table.LimitEntry, r *store.TakeRequest, nowNS int64) bool {
	c := &r.Calls[0]
	st := p.Words()
	if st.BlockedNS != 0 {
		return false
	}
	old := st.A
	d := c.Limit.Decide(&st, f.sh.TimeOf(c.Limit, nowNS), r.Cost, cell.Take)
	if d.Limited && st.BlockedNS == 0 {
		if !f.valid() {
			return false
		}
	} else {
		if !f.begin() {
			return false
		}
		if p.A.Load() != old || p.Words().BlockedNS != 0 {
			f.end()
			return false
		}
		// The key ends no sooner than before, so it keeps its place in the wheel: what passes adds to the state, and a block
		// begins only where none holds. Only SetWall makes an end earlier, and it waits for this call.
		p.SetState(&st)
		f.e.TAT.Store(uint64(nowNS) + d.ResetAfterNS)
		f.changed()
	}
	setDecision(&c.Decision, &d)
	return true
}

// takeWords decides on any other limit.
func (f *LockFree) takeWords(p *table.LimitEntry, r *store.TakeRequest, nowNS int64) bool {
	if !f.begin() {
		return false
	}
	c, at := &r.Calls[0], f.sh.TimeOf(r.Calls[0].Limit, nowNS)
	st := p.Words()
	if p.Ring.Load() != 0 || BlockedTooLong(c, &st, at) {
		f.end()
		return false
	}
	blocked := st.BlockedNS
	d := c.Limit.Decide(&st, at, r.Cost, cell.Take)
	switch {
	case st.Ring != nil: // room must be claimed first
		f.end()
		return false
	case d.Limited && st.BlockedNS == blocked:
		f.end()
	default:
		p.SetState(&st)
		f.e.TAT.Store(uint64(nowNS) + d.ResetAfterNS)
		f.changed()
	}
	setDecision(&c.Decision, &d)
	return true
}

// setDecision is *to = *from, field by field. The compiler copies a struct 16 bytes at a time, and the processor must then wait for the
// words just written to reach the cache. That took some 15 ns of a decision, together with Throttle's copy of a Request.
func setDecision(to, from *cell.Decision) {
	to.Limited = from.Limited
	to.Blocked = from.Blocked
	to.Limit = from.Limit
	to.Remaining = from.Remaining
	to.RetryAfterNS = from.RetryAfterNS
	to.ResetAfterNS = from.ResetAfterNS
}

func (c *Counts) add(f *LockFree) {
	c.hits++
	if f.passed {
		c.changes++
	}
}

// BlockedTooLong reports a block that ends later than the policy's present limit would set it now. A literal's block stays: a
// call with another literal must not end it. at is now, in the limit's time.
func BlockedTooLong(c *store.Call, st *cell.State, at int64) bool {
	return c.Policy != nil && st.BlockedNS > uint64(at+c.Limit.BlockNS)
}

// touchFromKeys is how many keys a table must hold for a batch to prefetch from it. A smaller table is in the caches anyhow, and touching
// it would cost 20 ns a call.
const touchFromKeys = 1 << 14

// Prefetch notes where the keys of up to PerLock requests seem to be.
type Prefetch struct {
	n      int
	hashes [PerLock]uint64      // of their keys
	slots  [PerLock]*table.Slot // that seem to be their keys', or nil

	flushes uint64 // before slots were looked for
}

func (b *Prefetch) Add(hash uint64) {
	b.hashes[b.n] = hash
	b.n++
}

// Large reports whether the table is larger than the caches.
func (s *Shards) Large() bool { return s.Room.Keys.Load() >= touchFromKeys }

// Touch brings what the requests need into the caches, and notes where their keys seem to be. It takes no lock, so what it reads may be
// changing.
//
// It collects addresses first and then touches them in loops of a few instructions, as a processor looks only some hundred instructions
// past a load that waits: with a look-up between two touches, only five misses overlap.
func (s *Shards) Touch(b *Prefetch) {
	b.flushes = s.flushes.Load()
	var sum uint64
	var chunks [PerLock]*table.Chunk
	for i, hash := range b.hashes[:b.n] {
		chunks[i] = s.ShardOf(hash).Index.Peek(table.TagOfHash(hash))
	}
	for i, hash := range b.hashes[:b.n] {
		sum += chunks[i].Touch(table.TagOfHash(hash))
	}
	for i, hash := range b.hashes[:b.n] {
		p := chunks[i].Find(table.TagOfHash(hash))
		if n := p.Next(); n != table.NoSlot {
			b.slots[i] = s.ShardOf(hash).Slabs.Peek(n)
		}
	}
	for _, e := range b.slots[:b.n] {
		if e != nil {
			sum += e.Touch()
		}
	}
	keep(sum)
}

// keep takes the sum of loads, so that the compiler does not leave them out.
//
//go:noinline
func keep(uint64) {}

// TouchLimits touches the first limit entries of the requests' keys.
func (s *Shards) TouchLimits(b *Prefetch) {
	var sum uint64
	for i, e := range b.slots[:b.n] {
		if e == nil {
			continue
		}
		if info := e.Info.Load(); info&table.FlagLimits != 0 {
			if p := s.ShardOf(b.hashes[i]).Limits.Peek(uint32(info)); p != nil {
				sum += p.A.Load()
			}
		}
	}
	keep(sum)
}
