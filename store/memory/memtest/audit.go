// Package memtest is what tests of several packages of the store in memory share: short ways to write and read a store, the audit of what
// it keeps account of, and limits of all kinds.
package memtest

import (
	"fmt"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/memory/table"
)

// Audit checks what a store keeps account of against what it holds: the room, the slots, limit entries and rings in use and free,
// and when each key ends.
func Audit(s *shard.Shards) error {
	for i := range s.All {
		s.All[i].Mu.Lock()
		defer s.All[i].Mu.Unlock()
	}
	var keys, bytes int64
	for i := range s.All {
		sh := &s.All[i]
		a, err := auditTable(&sh.Table)
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		keys, bytes = keys+a.keys, bytes+a.bytes
		if held, next := sh.Held.Load(), sh.NextEndNS.Load(); held != sh.InUse || next != sh.Wheel.NextNS() {
			return fmt.Errorf("shard %d: published are %d keys, the next to end at %d, and there are %d, at %d",
				i, held, next, sh.InUse, sh.Wheel.NextNS())
		}
	}
	if k, b := s.Room.Keys.Load(), s.Room.Bytes.Load(); k != keys || b != bytes {
		return fmt.Errorf("%d keys and %d bytes are accounted for, and %d and %d held", k, b, keys, bytes)
	}
	return nil
}

// Footprint is what is allocated for keys, except for the index.
func Footprint(s *shard.Shards) (n int64) {
	for i := range s.All {
		n += footprint(&s.All[i].Table)
	}
	return n
}

// audit is what a table holds.
type audit struct{ keys, bytes int64 } // bytes by the estimate of MaxBytes

// auditTable checks what a table keeps account of against what it holds: the slots, limit entries and rings in use and free, the lists, and
// when each key ends.
func auditTable(t *table.Table) (a audit, err error) {
	if a.keys, a.bytes, err = auditKeys(t); err != nil {
		return a, err
	}
	return a, auditCounts(t)
}

// footprint is what is allocated for keys, except for the index.
func footprint(t *table.Table) int64 {
	bytes := t.Slabs.FreePlaces.There*48 + (t.Keys.Tails.FreePlaces.There+t.Keys.Huge.FreePlaces.There)*32 +
		t.Limits.FreePlaces.There*table.LimitEntryBytes + t.Limits.Rings.FreePlaces.There*table.RingBytes
	n := int64(bytes) * table.SlabSize
	var scratch [table.HugeKey]byte
	for at, left := t.Slabs.Next(0, 1<<30); left > 0; at, left = t.Slabs.Next(at+1, 1<<30) {
		e := t.Slabs.At(at)
		if key := t.Keys.View(e, &scratch); len(key) >= table.HugeKey {
			n += int64(cap(key))
		}
		for p := range t.LimitsOf(e) {
			if st := t.Limits.State(p); st.Ring != nil {
				n += table.BytesOfRing(st.Ring) - table.RingBytes
			}
		}
	}
	return n
}

func auditKeys(t *table.Table) (keys, bytes int64, err error) {
	slots, used, rings := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for n, left := t.Slabs.Next(0, 1<<30); left > 0; n, left = t.Slabs.Next(n+1, 1<<30) {
		e := t.Slabs.At(n)
		slots[n] = true
		keys++
		bytes += t.CostBytes(n, e)
		if !e.HoldsLimits() {
			continue
		}
		if e.Has(table.FlagCount) || e.FirstLimit() == 0 {
			return 0, 0, fmt.Errorf("a count holds limits, or a key with limits none")
		}
		if end := t.LimitsEndNS(e); end != e.TAT.Load() {
			return 0, 0, fmt.Errorf("a key ends at %d, and its limits at %d", e.TAT.Load(), end)
		}
		type id struct {
			policy uint32
			shape  cell.Shape
		}
		seen := map[id]bool{}
		for n := e.FirstLimit(); n != 0; n = t.Limits.At(n).Next.Load() {
			p := t.Limits.At(n)
			l := t.Limits.Limit(p)
			name := id{policy: p.PolicyID()}
			if name.policy == 0 {
				name = id{0, l.Shape}
			}
			ring := p.Ring.Load()
			empty := ring != 0 && l.Name == cell.Name{} && t.Limits.Rings.At(ring).Words() == nil
			if used[n] || seen[name] || ring != 0 && rings[ring] || empty {
				return 0, 0, fmt.Errorf("limit entry %d is there twice, or its ring or limit", n)
			}
			used[n], seen[name], rings[p.Ring.Load()] = true, true, true
		}
		if len(seen) > store.MaxLimits {
			return 0, 0, fmt.Errorf("%d limits under a key", len(seen))
		}
	}
	if keys != t.InUse {
		return 0, 0, fmt.Errorf("%d slots in use, and %d held", t.InUse, keys)
	}
	if int(keys) != t.Slabs.FreePlaces.InUse {
		return 0, 0, fmt.Errorf("%d slots are in use, and %d taken", keys, t.Slabs.FreePlaces.InUse)
	}
	if err := auditPlaces(&t.Slabs.FreePlaces, slots, func(n uint32) uint32 { return t.Slabs.At(n).Older() }); err != nil {
		return 0, 0, fmt.Errorf("slots: %w", err)
	}
	return keys, bytes, auditLimits(t, used, rings)
}

// auditCounts checks what a table counts, and what it holds beside its slots.
func auditCounts(t *table.Table) (err error) {
	var lists [4]int
	var scratch [table.HugeKey]byte
	huge, forever := 0, int64(0)
	for n, left := t.Slabs.Next(0, 1<<30); left > 0; n, left = t.Slabs.Next(n+1, 1<<30) {
		e := t.Slabs.At(n)
		lists[e.List()]++
		if e.Has(table.FlagCount) && !e.Has(table.FlagExpiry|table.FlagNoExpiry) {
			err = fmt.Errorf("a count ends with its TAT")
		}
		if len(t.Keys.View(e, &scratch)) >= table.HugeKey {
			huge++
		}
		if e.Has(table.FlagNoExpiry) {
			forever++
		}
	}
	if huge != t.Keys.Huge.FreePlaces.InUse || forever != t.NoExpiry {
		err = fmt.Errorf("%d huge keys and %d keys without an expiry are kept, of %d and %d", t.Keys.Huge.FreePlaces.InUse, t.NoExpiry,
			huge, forever)
	}
	for name := table.Probation; name <= table.Protected; name++ {
		if kept := t.Lists.Of(name).Keys; kept != lists[name] {
			err = fmt.Errorf("list %d counts %d keys, and has %d", name, kept, lists[name])
		}
	}
	return err
}

// auditLimits checks that what is not in use is free, once.
func auditLimits(t *table.Table, used, rings map[uint32]bool) error {
	delete(rings, 0)
	entries := len(used)
	if entries != t.Limits.FreePlaces.InUse {
		return fmt.Errorf("%d limit entries are in use, and %d taken", entries, t.Limits.FreePlaces.InUse)
	}
	if err := auditPlaces(&t.Limits.FreePlaces, used, func(n uint32) uint32 { return t.Limits.At(n).Next.Load() }); err != nil {
		return fmt.Errorf("limit entries: %w", err)
	}
	if len(rings) != t.Limits.Rings.FreePlaces.InUse {
		return fmt.Errorf("%d rings are in use, and %d taken", len(rings), t.Limits.Rings.FreePlaces.InUse)
	}
	if err := auditPlaces(&t.Limits.Rings.FreePlaces, rings, func(n uint32) uint32 { return t.Limits.Rings.At(n).Next }); err != nil {
		return fmt.Errorf("rings: %w", err)
	}
	return nil
}

// auditPlaces checks that each place is in use or free, once, and that slabs are open that have a free one.
func auditPlaces(p *table.FreeList, used map[uint32]bool, next func(uint32) uint32) error {
	there := 0
	for k := range p.Slabs {
		u := &p.Slabs[k]
		open := p.Open[k/64]>>(k%64)&1 != 0
		if open != (!u.There || u.Used < table.SlabSize) || open && k/64 < p.Low {
			return fmt.Errorf("slab %d is open %v: %+v, low %d", k, open, *u, p.Low)
		}
		if !u.There {
			continue
		}
		there++
		count, first := 0, uint32(k)*table.SlabSize
		for n := range uint32(table.SlabSize) {
			if used[first+n] {
				count++
			}
		}
		if k == 0 {
			count++
		}
		free := 0
		for n := u.Free; n != 0; n = next(n) {
			if used[n] || n < first || n >= first+uint32(u.Fresh) || free > table.SlabSize {
				return fmt.Errorf("place %d of slab %d is free and in use, or not its", n, k)
			}
			free++
		}
		if count != int(u.Used) || count+free != int(u.Fresh) {
			return fmt.Errorf("slab %d has %d in use and %d free: %+v", k, count, free, *u)
		}
	}
	if there != p.There {
		return fmt.Errorf("%d slabs, of which %d are counted", there, p.There)
	}
	return nil
}
