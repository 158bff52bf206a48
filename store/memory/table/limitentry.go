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
	Policy        atomic.Uint32 // Policy.ID; 0: a literal
	Next          atomic.Uint32 // of the same key
	Ring          atomic.Uint32 // number of the ring, 0: none
}

const (
	// LimitEntryBytes is what each limit under a key takes beside the key, by the estimate of MaxBytes, and RingBytes what a ring
	// takes beside its words.
	LimitEntryBytes = 64
	RingBytes       = 48
)

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
}

func ringOf(words []uint64) Ring {
	return Ring{words: unsafe.SliceData(words), count: uint32(len(words))}
}

// Words are nil in a free place.
func (r *Ring) Words() []uint64 { return unsafe.Slice(r.words, r.count) }

func (r *Ring) link() uint32     { return r.Next }
func (r *Ring) setLink(n uint32) { r.Next = n }

// drop forgets all limit entries.
func (t *limitEntries) drop() {
	t.arena.drop()
	t.Rings.drop()
}

func (t *limitEntries) Free(n uint32) {
	t.setRing(t.At(n), nil)
	t.release(t.free(n))
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
	n := p.Ring.Load()
	switch {
	case words == nil && n != 0:
		*t.Rings.At(n) = Ring{}
		t.Rings.release(t.Rings.free(n))
		p.Ring.Store(0)
	case words == nil:
	case n != 0:
		*t.Rings.At(n) = ringOf(words)
	default:
		n, r := t.Rings.alloc()
		*r = ringOf(words)
		p.Ring.Store(n)
	}
}

// Untell notes that a log no longer starts with what was told of it.
func (t *limitEntries) Untell(p *LimitEntry) {
	if n := p.Ring.Load(); n != 0 {
		t.Rings.At(n).Told = cell.Told{}
	}
}

// Bytes is what a limit entry takes, by the estimate of MaxBytes.
func (t *limitEntries) Bytes(p *LimitEntry) int64 { return LimitEntryBytes + BytesOfRing(t.ring(p)) }

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
func (p *LimitEntry) Is(l *cell.Limit, policy uint32, shape uint32) bool {
	if own := p.Policy.Load(); policy != 0 || own != 0 {
		return own == policy && (p.Code.Load()^shape)&cell.CodeOfLeases == 0
	}
	return p.Code.Load() == shape && p.span.Load() == l.Span()
}

// Same reports whether a limit can go on with a limit entry's state as it is.
func (p *LimitEntry) Same(l *cell.Limit, shape uint32) bool {
	return p.Code.Load() == shape && p.span.Load() == l.Span() && p.params.Load() == packed(l.Params)
}

// Alone reports whether a limit entry is all that its key holds, and a limit can go on with it as it is.
func (p *LimitEntry) Alone(l *cell.Limit, policy uint32) bool {
	return p.Next.Load() == 0 && p.Policy.Load() == policy && p.Same(l, l.Code())
}

// Limit is the limit that has left a limit entry's state.
func (p *LimitEntry) Limit() cell.Limit {
	shape, params := p.Shape(), p.params.Load()
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
