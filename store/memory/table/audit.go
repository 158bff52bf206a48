package table

import (
	"celld/store"
	"fmt"
)

// Audit is what a table holds.
type Audit struct {
	Keys, Bytes           int64 // bytes by the estimate of MaxBytes
	SpentKeys, SpentBytes int64
	Footprint             int64 // bytes that are allocated, except for the index
}

// Audit checks what a table keeps account of against what it holds: the slots, tallies and rings in use and free, the lists, and when
// each key ends. It is for tests, which call it between their steps.
func (t *Table) Audit() (a Audit, err error) {
	if a.Keys, a.Bytes, err = t.auditKeys(); err != nil {
		return a, err
	}
	a.SpentKeys, a.SpentBytes, err = t.auditCounts()
	a.Footprint = t.footprint()
	return a, err
}

// footprint is what is allocated for keys, except for the index.
func (t *Table) footprint() int64 {
	n := int64(t.Slabs.Places.There)<<slabBits*48 + int64(t.Keys.tails.places.There)<<slabBits*32 + int64(t.Tallies.places.There)<<slabBits*TallyBytes
	for _, key := range t.Keys.Huge {
		n += int64(cap(key))
	}
	for _, r := range t.Tallies.Rings {
		n += RingBytes + 8*int64(cap(r.words))
	}
	return n
}

func (t *Table) auditKeys() (keys, bytes int64, err error) {
	slots, used, rings := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for n, left := t.Slabs.Next(0, 1<<30); left > 0; n, left = t.Slabs.Next(n+1, 1<<30) {
		e := t.Slabs.At(n)
		slots[n] = true
		keys++
		bytes += t.CostBytes(n, e)
		if !e.HoldsLimits() {
			continue
		}
		if e.Spent() || e.FirstTally() == 0 {
			return 0, 0, fmt.Errorf("a spent key holds limits, or a key with limits none")
		}
		if end := t.LimitsEndNS(e); end != e.TAT.Load() {
			return 0, 0, fmt.Errorf("a key ends at %d, and its limits at %d", e.TAT.Load(), end)
		}
		type id struct {
			policy, shape uint32
			periodNS      int64
		}
		seen := map[id]bool{}
		for n := e.FirstTally(); n != 0; n = t.Tallies.At(n).Next.Load() {
			p := t.Tallies.At(n)
			name := id{policy: p.Policy.Load()}
			if p.Policy.Load() == 0 {
				name = id{0, p.Code.Load(), p.periodNS.Load()}
			}
			if used[n] || seen[name] || p.Ring.Load() != 0 && (rings[p.Ring.Load()] || t.Tallies.Rings[p.Ring.Load()].words == nil) {
				return 0, 0, fmt.Errorf("tally %d is there twice, or its ring or limit", n)
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
	if int(keys) != t.Slabs.Places.inUse {
		return 0, 0, fmt.Errorf("%d slots are in use, and %d taken", keys, t.Slabs.Places.inUse)
	}
	if err := t.Slabs.Places.Audit(slots, func(n uint32) uint32 { return t.Slabs.At(n).older() }); err != nil {
		return 0, 0, fmt.Errorf("slots: %w", err)
	}
	return keys, bytes, t.Tallies.audit(used, rings)
}

// auditCounts checks what a table counts, and what it holds beside its slots.
func (t *Table) auditCounts() (spentKeys, spentBytes int64, err error) {
	var lists [4]int
	huge, expiring, forever := 0, 0, int64(0)
	for n, left := t.Slabs.Next(0, 1<<30); left > 0; n, left = t.Slabs.Next(n+1, 1<<30) {
		e := t.Slabs.At(n)
		lists[e.List()]++
		if e.Spent() {
			spentKeys++
			spentBytes += CostBytes(t.Keys.length(n, e))
		}
		if e.keyLen() == HugeKey {
			huge++
		}
		if e.Has(FlagExpiry) {
			expiring++
		}
		if e.Has(FlagNoExpiry) {
			forever++
		}
	}
	if huge != len(t.Keys.Huge) || expiring != len(t.Expiries) || forever != t.NoExpiry {
		err = fmt.Errorf("%d huge keys, %d expiries and %d keys without are kept, of %d, %d and %d", len(t.Keys.Huge), len(t.Expiries), t.NoExpiry, huge, expiring, forever)
	}
	for name := Probation; name <= SpentList; name++ {
		if kept := t.Lists.Of(name).Keys; kept != lists[name] {
			err = fmt.Errorf("list %d counts %d keys, and has %d", name, kept, lists[name])
		}
	}
	return spentKeys, spentBytes, err
}

// Audit checks that what is not in use is free, once.
func (t *tallies) audit(used, rings map[uint32]bool) error {
	delete(rings, 0)
	tallies := len(used)
	if tallies != t.places.inUse {
		return fmt.Errorf("%d tallies are in use, and %d taken", tallies, t.places.inUse)
	}
	if err := t.places.Audit(used, func(n uint32) uint32 { return t.At(n).Next.Load() }); err != nil {
		return fmt.Errorf("tallies: %w", err)
	}
	inUse := len(rings)
	for _, n := range t.FreeRings {
		if rings[n] || t.Rings[n].words != nil {
			return fmt.Errorf("ring %d is free, and in use", n)
		}
		rings[n] = true
	}
	if most := max(len(t.Rings), 1); len(rings) != most-1 {
		return fmt.Errorf("%d rings are in use and %d free, of %d", inUse, len(t.FreeRings), most-1)
	}
	return nil
}

// Audit checks that each place is in use or free, once, and that slabs are open that have a free one.
func (p *Places) Audit(used map[uint32]bool, next func(uint32) uint32) error {
	there := 0
	for k := range p.Slabs {
		u := &p.Slabs[k]
		open := p.open[k/64]>>(k%64)&1 != 0
		if open != (!u.there || u.Used < SlabSize) || open && k/64 < p.low {
			return fmt.Errorf("slab %d is open %v: %+v, low %d", k, open, *u, p.low)
		}
		if !u.there {
			continue
		}
		there++
		count, first := 0, uint32(k)<<slabBits
		for n := range uint32(SlabSize) {
			if used[first+n] {
				count++
			}
		}
		if k == 0 {
			count++
		}
		free := 0
		for n := u.free; n != 0; n = next(n) {
			if used[n] || n < first || n >= first+uint32(u.fresh) || free > SlabSize {
				return fmt.Errorf("place %d of slab %d is free and in use, or not its", n, k)
			}
			free++
		}
		if count != int(u.Used) || count+free != int(u.fresh) {
			return fmt.Errorf("slab %d has %d in use and %d free: %+v", k, count, free, *u)
		}
	}
	if there != p.There {
		return fmt.Errorf("%d slabs, of which %d are counted", there, p.There)
	}
	return nil
}
