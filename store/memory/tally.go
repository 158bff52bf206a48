package memory

import (
	"sync/atomic"

	"celld/cell"
)

// tally is the state of one limit under a key that holds limits: a cache line, and no pointer in it. What is longer than
// two words is a ring of its own. All words are atomic for calls without the lock; see slot.
type tally struct {
	a, b, blockedNS atomic.Uint64 // cell.State
	touchedNS       atomic.Int64  // of a key's first: the key's last use, as the slot's word for that has the number of this tally
	periodNS        atomic.Int64  // of the cell.Shape; code is the rest of it
	code            atomic.Uint32
	count, burst    atomic.Uint32 // cell.Params
	policy          atomic.Uint32 // Policy.ID; 0: a literal
	next            atomic.Uint32 // of the same key
	ring            atomic.Uint32 // number of the ring, 0: none
}

const (
	// TallyBytes is what each limit under a key takes beside the key, by the estimate of MaxBytes, and RingBytes what a ring
	// takes beside 8 for each of its words.
	TallyBytes = 64
	RingBytes  = 56
)

func (p *tally) link() uint32     { return p.next.Load() }
func (p *tally) setLink(n uint32) { p.next.Store(n) }

// tallies are a shard's.
type tallies struct {
	arena[tally, *tally]
	rings     []ring // by number; the first is none
	freeRings []uint32
}

type ring struct {
	words []uint64
	told  cell.Told // of a log, as long as it has this ring
}

// drop forgets all tallies.
func (t *tallies) drop() {
	t.arena.drop()
	t.rings, t.freeRings = nil, nil
}

func (t *tallies) put(n uint32) {
	t.setRing(t.at(n), nil)
	t.arena.put(n)
}

// ring is that of a tally, nil if it has none.
func (t *tallies) ring(p *tally) []uint64 {
	n := p.ring.Load()
	if n == 0 {
		return nil
	}
	return t.rings[n].words
}

func (t *tallies) setRing(p *tally, words []uint64) {
	n := p.ring.Load()
	switch {
	case words == nil && n != 0:
		t.rings[n] = ring{}
		t.freeRings = append(t.freeRings, n)
		p.ring.Store(0)
		if len(t.freeRings) == len(t.rings)-1 { // the last one in use
			t.rings, t.freeRings = nil, nil
		}
	case words == nil:
	case n != 0:
		t.rings[n] = ring{words: words}
	case len(t.freeRings) > 0:
		last := len(t.freeRings) - 1
		n, t.freeRings = t.freeRings[last], t.freeRings[:last]
		p.ring.Store(n)
		t.rings[n].words = words
	default:
		if len(t.rings) == 0 {
			t.rings = append(t.rings, ring{})
		}
		p.ring.Store(uint32(len(t.rings)))
		t.rings = append(t.rings, ring{words: words})
	}
}

// untell notes that what has been told of a log is no longer what it starts with.
func (t *tallies) untell(p *tally) {
	if n := p.ring.Load(); n != 0 {
		t.rings[n].told = cell.Told{}
	}
}

// bytes is what a tally takes, by the estimate of MaxBytes.
func (t *tallies) bytes(p *tally) int64 { return TallyBytes + bytesOfRing(t.ring(p)) }

func bytesOfRing(ring []uint64) int64 {
	if ring == nil {
		return 0
	}
	return RingBytes + 8*int64(cap(ring))
}

// cloneRing takes no more memory than the ring has, as slices.Clone may.
func cloneRing(ring []uint64) []uint64 {
	if ring == nil {
		return nil
	}
	return append(make([]uint64, 0, len(ring)), ring...)
}

// is reports whether a tally is that of a limit: of the policy, or of literals that share the state.
func (p *tally) is(l *cell.Limit, policy uint32, shape uint32) bool {
	if own := p.policy.Load(); policy != 0 || own != 0 {
		return own == policy && (p.code.Load()^shape)&cell.CodeOfLeases == 0
	}
	return p.code.Load() == shape && p.periodNS.Load() == l.PeriodNS
}

// same reports whether a limit can go on with a tally's state as it is.
func (p *tally) same(l *cell.Limit, shape uint32) bool {
	return p.code.Load() == shape && p.periodNS.Load() == l.PeriodNS && int64(p.count.Load()) == l.Count && int64(p.burst.Load()) == l.Burst
}

// limit is the limit that has left a tally's state.
func (p *tally) limit() cell.Limit {
	return cell.Restore(p.shape(), cell.Params{Count: int64(p.count.Load()), Burst: int64(p.burst.Load())})
}

func (p *tally) shape() cell.Shape { return cell.ShapeOf(p.code.Load(), p.periodNS.Load()) }

func (t *tallies) state(p *tally) cell.State {
	return cell.State{A: p.a.Load(), B: p.b.Load(), BlockedNS: p.blockedNS.Load(), Ring: t.ring(p)}
}

// setState stores the words of a state that have changed.
func (p *tally) setState(st *cell.State) {
	p.a.Store(st.A)
	if p.b.Load() != st.B {
		p.b.Store(st.B)
	}
	if p.blockedNS.Load() != st.BlockedNS {
		p.blockedNS.Store(st.BlockedNS)
	}
}

// keep stores what a limit has left.
func (t *tallies) keep(p *tally, l *cell.Limit, shape uint32, st *cell.State) {
	p.setState(st)
	if !p.same(l, shape) {
		p.code.Store(shape)
		p.periodNS.Store(l.PeriodNS)
		p.count.Store(uint32(l.Count))
		p.burst.Store(uint32(l.Burst))
	}
	if ring := t.ring(p); len(st.Ring) != len(ring) || len(ring) > 0 && &st.Ring[0] != &ring[0] {
		t.setRing(p, st.Ring)
	}
}
