package table

import (
	"math"
	"sync/atomic"
	"unsafe"

	"celld/cell"
)

// LimitEntry is the state of one limit under a key that holds limits: a cache line, without a pointer. What is longer than two words is a
// ring of its own. All words are atomic for calls without the lock: see Slot.
type LimitEntry struct {
	A, B, blocked atomic.Uint64 // cell.State; blocked is BlockedNS, with the bit atFull where it has AtFull
	TouchedNS     atomic.Int64  // of a key's first: the key's last use, as the slot's word for that holds the number of this entry
	span          atomic.Int64  // of the cell.Shape; Code is the rest of it
	params        atomic.Uint64 // cell.Params: see packed
	Code          atomic.Uint32
	Policy        atomic.Uint32 // Policy.ID; 0: a literal; namedLiteral: one with a Name, which is in the ring
	Next          atomic.Uint32 // of the same key
	Ring          atomic.Uint32 // number of the ring, 0: none
}

const (
	// LimitEntryBytes is what each limit under a key takes beside the key, by the estimate of MaxBytes, and RingBytes what a ring
	// takes beside its words.
	LimitEntryBytes = 64
	RingBytes       = 48

	// nameBytes is what a literal's Name takes with the ring that has it: 300 bytes where no other entry has the Name, and 48 where many
	// have it. What lies between keeps both within the bound of the process.
	nameBytes = 192
)

// namedLiteral stands in Policy for a literal with a Name. No Policy.ID is as high.
const namedLiteral = math.MaxUint32

func (p *LimitEntry) link() uint32     { return p.Next.Load() }
func (p *LimitEntry) setLink(n uint32) { p.Next.Store(n) }

// limitEntries are a shard's.
type limitEntries struct {
	arena[LimitEntry, *LimitEntry]
	Rings arena[Ring, *Ring]
}

type Ring struct {
	words *uint64   // the first of them
	count uint32    // of words
	Next  uint32    // of a free place
	Told  cell.Told // of a log, as long as it has this ring
	name  cell.Name // of a literal
}

func (r *Ring) set(words []uint64) {
	*r = Ring{words: unsafe.SliceData(words), count: uint32(len(words)), name: r.name}
}

// Words are nil in a free place, and where there is only a name.
func (r *Ring) Words() []uint64 { return unsafe.Slice(r.words, r.count) }

func (r *Ring) link() uint32     { return r.Next }
func (r *Ring) setLink(n uint32) { r.Next = n }

// drop forgets all limit entries.
func (t *limitEntries) drop() {
	t.arena.drop()
	t.Rings.drop()
}

func (t *limitEntries) Free(n uint32) {
	t.freeRing(t.At(n))
	t.release(t.free(n))
}

func (t *limitEntries) freeRing(p *LimitEntry) {
	if n := p.Ring.Load(); n != 0 {
		*t.Rings.At(n) = Ring{}
		t.Rings.release(t.Rings.free(n))
		p.Ring.Store(0)
	}
}

// ring is that of a limit entry, nil if it has none.
func (t *limitEntries) ring(p *LimitEntry) []uint64 {
	n := p.Ring.Load()
	if n == 0 {
		return nil
	}
	return t.Rings.At(n).Words()
}

func (t *limitEntries) setRing(p *LimitEntry, words []uint64) {
	if words == nil && p.Policy.Load() != namedLiteral {
		t.freeRing(p)
		return
	}
	if p.Ring.Load() == 0 {
		n, _ := t.Rings.alloc()
		p.Ring.Store(n)
	}
	t.Rings.At(p.Ring.Load()).set(words)
}

// begin makes an entry that of a policy or, where that is 0, of a literal.
func (t *limitEntries) begin(p *LimitEntry, l *cell.Limit, policy uint32) {
	p.Policy.Store(entryPolicy(l, policy))
	if entryPolicy(l, policy) == namedLiteral {
		t.setRing(p, nil)
		t.Rings.At(p.Ring.Load()).name = l.Name
	}
}

// entryPolicy is Policy of the entry of a limit.
func entryPolicy(l *cell.Limit, policy uint32) uint32 {
	if policy == 0 && l.Name != (cell.Name{}) {
		return namedLiteral
	}
	return policy
}

// PolicyID is that of the policy; 0: a literal.
func (p *LimitEntry) PolicyID() uint32 {
	if id := p.Policy.Load(); id != namedLiteral {
		return id
	}
	return 0
}

// name is that of a literal.
func (t *limitEntries) name(p *LimitEntry) (name cell.Name) {
	if p.Policy.Load() == namedLiteral {
		name = t.Rings.At(p.Ring.Load()).name
	}
	return name
}

// Untell notes that a log no longer starts with what was told of it.
func (t *limitEntries) Untell(p *LimitEntry) {
	if n := p.Ring.Load(); n != 0 {
		t.Rings.At(n).Told = cell.Told{}
	}
}

// Bytes is what a limit entry takes, by the estimate of MaxBytes.
func (t *limitEntries) Bytes(p *LimitEntry) int64 {
	return bytesOf(p.Policy.Load(), t.ring(p))
}

// BytesOf is Bytes of the entry of a limit, a policy's or a literal.
func BytesOf(l *cell.Limit, policy uint32, ring []uint64) int64 {
	return bytesOf(entryPolicy(l, policy), ring)
}

func bytesOf(entryPolicy uint32, ring []uint64) int64 {
	bytes := LimitEntryBytes + BytesOfRing(ring)
	if entryPolicy == namedLiteral {
		bytes += nameBytes
	}
	return bytes
}

func BytesOfRing(ring []uint64) int64 {
	if ring == nil {
		return 0
	}
	return RingBytes + allocated(8*len(ring))
}

// CloneRing copies a ring into just as much memory, where slices.Clone may take more.
func CloneRing(ring []uint64) []uint64 {
	if ring == nil {
		return nil
	}
	return append(make([]uint64, 0, len(ring)), ring...)
}

// Is reports whether an entry belongs to a limit: to the policy, or to literals that share the state.
func (t *limitEntries) Is(p *LimitEntry, l *cell.Limit, policy uint32, shape uint32) bool {
	switch {
	case p.Policy.Load() != entryPolicy(l, policy):
		return false
	case policy != 0:
		return (p.Code.Load()^shape)&cell.CodeOfLeases == 0
	}
	return p.Code.Load() == shape && p.span.Load() == l.Span() && t.name(p) == l.Name
}

// Same reports whether a limit can go on with a limit entry's state as it is.
func (p *LimitEntry) Same(l *cell.Limit, shape uint32) bool {
	return p.Code.Load() == shape && p.span.Load() == l.Span() && p.params.Load() == packed(l.Params)
}

// Alone reports whether a limit entry is all that its key holds, and a limit can go on with it as it is. It does not look at the names of
// literals: these have no entry that is Alone.
func (p *LimitEntry) Alone(l *cell.Limit, policy uint32) bool {
	return p.Next.Load() == 0 && p.Policy.Load() == policy && (policy != 0 || l.Name == cell.Name{}) && p.Same(l, l.Code())
}

// Limit is the limit that has left a limit entry's state. The Name of a policy's is not kept.
func (t *limitEntries) Limit(p *LimitEntry) cell.Limit {
	shape, params := p.Shape(), p.params.Load()
	shape.Name = t.name(p)
	if shape.HasBurst() {
		return cell.LimitOf(shape, cell.Params{Count: int64(params & math.MaxUint32), Burst: int64(params >> 32)})
	}
	return cell.LimitOf(shape, cell.Params{Count: int64(params)})
}

// packed is the parameters of a limit in a word. A count of more than 32 bits has no burst beside it.
func packed(p cell.Params) uint64 { return uint64(p.Burst)<<32 | uint64(p.Count) }

func (p *LimitEntry) Shape() cell.Shape { return cell.ShapeOf(p.Code.Load(), p.span.Load()) }

func (t *limitEntries) State(p *LimitEntry) cell.State {
	st := p.Words()
	st.Ring = t.ring(p)
	return st
}

// atFull is a bit that no instant has before the year 2262.
const atFull = 1 << 63

// Words is a state without its ring.
func (p *LimitEntry) Words() cell.State {
	blocked := p.blocked.Load()
	return cell.State{A: p.A.Load(), B: p.B.Load(), BlockedNS: blocked &^ atFull, AtFull: blocked&atFull != 0}
}

// SetState stores the words of a state that have changed.
func (p *LimitEntry) SetState(st *cell.State) {
	p.A.Store(st.A)
	if p.B.Load() != st.B {
		p.B.Store(st.B)
	}
	blocked := min(st.BlockedNS, atFull-1)
	if st.AtFull && blocked != 0 {
		blocked |= atFull
	}
	if p.blocked.Load() != blocked {
		p.blocked.Store(blocked)
	}
}

// Keep stores what a limit has left.
func (t *limitEntries) Keep(p *LimitEntry, l *cell.Limit, shape uint32, st *cell.State) {
	p.SetState(st)
	if !p.Same(l, shape) {
		p.Code.Store(shape)
		p.span.Store(l.Span())
		p.params.Store(packed(l.Params))
	}
	if OtherRing(st.Ring, t.ring(p)) {
		t.setRing(p, st.Ring)
	}
}

// OtherRing reports that a ring is not the same piece of memory as another.
func OtherRing(ring, than []uint64) bool {
	return len(ring) != len(than) || len(ring) > 0 && &ring[0] != &than[0]
}
