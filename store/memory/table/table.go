package table

// Table is the part of a shard that Flush drops. An empty one has no slab and no chunk.
type Table struct {
	Index    index
	Slabs    slabs
	Keys     keys
	Limits   limitEntries
	Lists    lists
	Wheel    wheel
	Wall     *WallAhead
	NoExpiry int64 // slots whose ExpiryNS is NoExpiry
	InUse    int64
}

// Clear makes the table an empty one.
func (t *Table) Clear() {
	t.Index.drop()
	t.Slabs.drop()
	t.Keys.drop()
	t.Limits.drop()
	t.Lists, t.Wheel = lists{}, newWheel()
	t.NoExpiry, t.InUse = 0, 0
}

// UseMemory gives the table m to take its memory from, which others share, and wall to tell wall time by.
func (t *Table) UseMemory(m *Reserves, wall *WallAhead) {
	t.Index.memory, t.Slabs.reserve, t.Keys.Tails.reserve, t.Wall = m, &m.slabs, &m.tails, wall
	t.Slabs.none = &noSlab
}

// IdleBytes is the memory of places that no key uses. When a key goes, this must grow by less than the estimate of the key, so that
// fewer keys always leave more room.
func (t *Table) IdleBytes() int64 {
	return int64(t.Slabs.FreePlaces.idle())*48 + int64(t.Keys.Tails.FreePlaces.idle()+t.Keys.Huge.FreePlaces.idle())*tailSize +
		int64(t.Limits.FreePlaces.idle())*LimitEntryBytes + int64(t.Limits.Rings.FreePlaces.idle())*RingBytes
}

// Begin makes a free slot that of a new key, the youngest on probation.
func (t *Table) Begin(n uint32, e *Slot, key []byte, nowNS int64) {
	e.SetInfo(keyLenMask|touchedMask|flagList, t.Keys.Set(e, key)|uint64(nowNS)>>touchedUnit|flagProbation)
	t.Lists.Push(&t.Slabs, Probation, n, e)
}

// TagOfHash is the tag of a key in the index.
func TagOfHash(hash uint64) uint32 { return uint32(hash >> 32) }

// Slot returns the slot of the key, live or dead, or NoSlot.
func (t *Table) Slot(hash uint64, key []byte) (uint32, *Slot) {
	for p := t.Index.find(TagOfHash(hash)); ; {
		n := p.Next()
		if n == NoSlot {
			return NoSlot, nil
		}
		if e := t.Slabs.At(n); t.Keys.Is(e, key) || len(key) >= HugeKey && t.Keys.isHuge(e, key) {
			return n, e
		}
	}
}

// Peek returns the slot that seems to be the key's, without any lock, or nil.
func (t *Table) Peek(hash uint64, key []byte) *Slot {
	for p := t.Index.find(TagOfHash(hash)); ; {
		n := p.Next()
		if n == NoSlot {
			return nil
		}
		if e := t.Slabs.Peek(n); e != nil && t.Keys.Is(e, key) {
			return e
		}
	}
}
