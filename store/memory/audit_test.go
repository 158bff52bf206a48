package memory

import (
	"celld/store"
	"fmt"
)

// Audit checks what a store keeps account of against what it holds: the room, the slots, tallies and rings in use and free,
// and when each key ends.
func (s *Store) Audit() error {
	for i := range s.shards {
		s.shards[i].mu.Lock()
		defer s.shards[i].mu.Unlock()
	}
	var keys, bytes, spentKeys, spentBytes int64
	for i := range s.shards {
		k, b, err := s.shards[i].audit()
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		keys, bytes = keys+k, bytes+b
		if k, b, err = s.shards[i].auditCounts(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		spentKeys, spentBytes = spentKeys+k, spentBytes+b
	}
	if k, b := s.room.spentKeys.Load(), s.room.spentBytes.Load(); k != spentKeys || b != spentBytes {
		return fmt.Errorf("%d spent keys and %d bytes are accounted for, and %d and %d held", k, b, spentKeys, spentBytes)
	}
	if k, b := s.room.keys.Load(), s.room.bytes.Load(); k != keys || b != bytes {
		return fmt.Errorf("%d keys and %d bytes are accounted for, and %d and %d held", k, b, keys, bytes)
	}
	return nil
}

func (sh *shard) audit() (keys, bytes int64, err error) {
	slots, used, rings := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for n, left := sh.slabs.next(0, 1<<30); left > 0; n, left = sh.slabs.next(n+1, 1<<30) {
		e := sh.slabs.at(n)
		slots[n] = true
		keys++
		bytes += sh.costBytes(n, e)
		if !e.holdsLimits() {
			continue
		}
		if e.spent() || e.firstTally() == 0 {
			return 0, 0, fmt.Errorf("a spent key holds limits, or a key with limits none")
		}
		if end := sh.limitsEndNS(e); end != e.tat.Load() {
			return 0, 0, fmt.Errorf("a key ends at %d, and its limits at %d", e.tat.Load(), end)
		}
		type id struct {
			policy, shape uint32
			periodNS      int64
		}
		seen := map[id]bool{}
		for n := e.firstTally(); n != 0; n = sh.tallies.at(n).next.Load() {
			p := sh.tallies.at(n)
			name := id{policy: p.policy.Load()}
			if p.policy.Load() == 0 {
				name = id{0, p.code.Load(), p.periodNS.Load()}
			}
			if used[n] || seen[name] || p.ring.Load() != 0 && (rings[p.ring.Load()] || sh.tallies.rings[p.ring.Load()].words == nil) {
				return 0, 0, fmt.Errorf("tally %d is there twice, or its ring or limit", n)
			}
			used[n], seen[name], rings[p.ring.Load()] = true, true, true
		}
		if len(seen) > store.MaxLimits {
			return 0, 0, fmt.Errorf("%d limits under a key", len(seen))
		}
	}
	if keys != sh.inUse {
		return 0, 0, fmt.Errorf("%d slots in use, and %d held", sh.inUse, keys)
	}
	if int(keys) != sh.slabs.places.inUse {
		return 0, 0, fmt.Errorf("%d slots are in use, and %d taken", keys, sh.slabs.places.inUse)
	}
	if err := sh.slabs.places.audit(slots, func(n uint32) uint32 { return sh.slabs.at(n).older() }); err != nil {
		return 0, 0, fmt.Errorf("slots: %w", err)
	}
	return keys, bytes, sh.tallies.audit(used, rings)
}

// auditCounts checks what a shard counts, what it holds beside its slots, and what it has published.
func (sh *shard) auditCounts() (spentKeys, spentBytes int64, err error) {
	var lists [4]int
	huge, expiring, forever := 0, 0, int64(0)
	for n, left := sh.slabs.next(0, 1<<30); left > 0; n, left = sh.slabs.next(n+1, 1<<30) {
		e := sh.slabs.at(n)
		lists[e.list()]++
		if e.spent() {
			spentKeys++
			spentBytes += costBytes(sh.keys.length(n, e))
		}
		if e.keyLen() == hugeKey {
			huge++
		}
		if e.has(flagExpiry) {
			expiring++
		}
		if e.has(flagNoExpiry) {
			forever++
		}
	}
	if huge != len(sh.keys.huge) || expiring != len(sh.expiries) || forever != sh.noExpiry {
		err = fmt.Errorf("%d huge keys, %d expiries and %d keys without are kept, of %d, %d and %d", len(sh.keys.huge), len(sh.expiries), sh.noExpiry, huge, expiring, forever)
	}
	for name := probation; name <= spentList; name++ {
		if kept := sh.lists.of(name).keys; kept != lists[name] {
			err = fmt.Errorf("list %d counts %d keys, and has %d", name, kept, lists[name])
		}
	}
	if held, spent, next := sh.held.Load(), sh.spentHeld.Load(), sh.nextEndNS.Load(); held != sh.inUse || int(spent) != lists[spentList] || next != sh.ends.nextNS() {
		err = fmt.Errorf("published are %d keys, %d spent, the next to end at %d, and there are %d, %d, at %d", held, spent, next, sh.inUse, lists[spentList], sh.ends.nextNS())
	}
	return spentKeys, spentBytes, err
}

// audit checks that what is not in use is free, once.
func (t *tallies) audit(used, rings map[uint32]bool) error {
	delete(rings, 0)
	tallies := len(used)
	if tallies != t.places.inUse {
		return fmt.Errorf("%d tallies are in use, and %d taken", tallies, t.places.inUse)
	}
	if err := t.places.audit(used, func(n uint32) uint32 { return t.at(n).next.Load() }); err != nil {
		return fmt.Errorf("tallies: %w", err)
	}
	inUse := len(rings)
	for _, n := range t.freeRings {
		if rings[n] || t.rings[n].words != nil {
			return fmt.Errorf("ring %d is free, and in use", n)
		}
		rings[n] = true
	}
	if most := max(len(t.rings), 1); len(rings) != most-1 {
		return fmt.Errorf("%d rings are in use and %d free, of %d", inUse, len(t.freeRings), most-1)
	}
	return nil
}

// audit checks that each place is in use or free, once, and that slabs are open that have a free one.
func (p *places) audit(used map[uint32]bool, next func(uint32) uint32) error {
	there := 0
	for k := range p.slabs {
		u := &p.slabs[k]
		open := p.open[k/64]>>(k%64)&1 != 0
		if open != (!u.there || u.used < slabSize) || open && k/64 < p.low {
			return fmt.Errorf("slab %d is open %v: %+v, low %d", k, open, *u, p.low)
		}
		if !u.there {
			continue
		}
		there++
		count, first := 0, uint32(k)<<slabBits
		for n := range uint32(slabSize) {
			if used[first+n] {
				count++
			}
		}
		if k == 0 {
			count++
		}
		free := 0
		for n := u.free; n != 0; n = next(n) {
			if used[n] || n < first || n >= first+uint32(u.fresh) || free > slabSize {
				return fmt.Errorf("place %d of slab %d is free and in use, or not its", n, k)
			}
			free++
		}
		if count != int(u.used) || count+free != int(u.fresh) {
			return fmt.Errorf("slab %d has %d in use and %d free: %+v", k, count, free, *u)
		}
	}
	if there != p.there {
		return fmt.Errorf("%d slabs, of which %d are counted", there, p.there)
	}
	return nil
}
