package store

import "celld/cell"

// tally is the state of one limit under a key that holds limits: a cache line, and no pointer in it. What is longer than
// two words is a ring of its own.
type tally struct {
	a, b      uint64 // cell.State
	blockedNS uint64
	touchedNS int64 // of a key's first: the key's last use, as the slot's word for that has the number of this tally
	periodNS  int64 // of the cell.Shape; code is the rest of it
	code      uint32
	count     uint32 // cell.Params
	burst     uint32
	policy    uint32 // Policy.ID; 0: a literal
	next      uint32 // of the same key
	ring      uint32 // number of the ring, 0: none
}

const (
	// TallyBytes is what each limit under a key takes beside the key, by the estimate of MaxBytes, and RingBytes what a ring
	// takes beside 8 for each of its words.
	TallyBytes = 64
	RingBytes  = 56

	// MaxLimits is how many limits a key holds at most.
	MaxLimits = 128
)

func (p *tally) link() *uint32 { return &p.next }

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

func (t *tallies) put(n uint32) {
	t.setRing(t.at(n), nil)
	t.arena.put(n)
}

// ring is that of a tally, nil if it has none.
func (t *tallies) ring(p *tally) []uint64 {
	if p.ring == 0 {
		return nil
	}
	return t.rings[p.ring].words
}

func (t *tallies) setRing(p *tally, words []uint64) {
	switch {
	case words == nil && p.ring != 0:
		t.rings[p.ring] = ring{}
		t.freeRings = append(t.freeRings, p.ring)
		if p.ring = 0; len(t.freeRings) == len(t.rings)-1 { // the last one in use
			t.rings, t.freeRings = nil, nil
		}
	case words == nil:
	case p.ring != 0:
		r := &t.rings[p.ring]
		r.words, r.told = words, cell.Told{}
	case len(t.freeRings) > 0:
		last := len(t.freeRings) - 1
		p.ring = t.freeRings[last]
		t.freeRings = t.freeRings[:last]
		t.rings[p.ring].words = words
	default:
		if len(t.rings) == 0 {
			t.rings = append(t.rings, ring{})
		}
		p.ring = uint32(len(t.rings))
		t.rings = append(t.rings, ring{words: words})
	}
}

// untell notes that what has been told of a log is no longer what it starts with.
func (t *tallies) untell(p *tally) {
	if p.ring != 0 {
		t.rings[p.ring].told = cell.Told{}
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

// codeOf packs a cell.Shape but for its period.
func codeOf(s *cell.Shape) uint32 {
	clock := uint32(0)
	if s.Clock {
		clock = 1
	}
	return uint32(s.Algo) | uint32(s.Unit)<<3 | clock<<6 | uint32(s.Buckets)<<8 | uint32(uint16(s.ZoneMin))<<16
}

// is reports whether a tally is that of a limit: of the policy, or of literals that share the state.
func (p *tally) is(l *cell.Limit, policy uint32, shape uint32) bool {
	if policy != 0 || p.policy != 0 {
		return p.policy == policy
	}
	return p.code == shape && p.periodNS == l.PeriodNS
}

// same reports whether a limit can go on with a tally's state as it is.
func (p *tally) same(l *cell.Limit, shape uint32) bool {
	return p.code == shape && p.periodNS == l.PeriodNS && int64(p.count) == l.Count && int64(p.burst) == l.Burst
}

// limit is the limit that has left a tally's state.
func (p *tally) limit() cell.Limit {
	return cell.Restore(p.shape(), cell.Params{Count: int64(p.count), Burst: int64(p.burst)})
}

func (p *tally) shape() cell.Shape {
	return cell.Shape{
		Algo: cell.Algo(p.code & 7), Unit: cell.Unit(p.code >> 3 & 7), Clock: p.code>>6&1 != 0,
		Buckets: uint8(p.code >> 8), ZoneMin: int16(p.code >> 16), PeriodNS: p.periodNS,
	}
}

func (t *tallies) state(p *tally) cell.State {
	return cell.State{A: p.a, B: p.b, BlockedNS: p.blockedNS, Ring: t.ring(p)}
}

// keep stores what a limit has left.
func (t *tallies) keep(p *tally, l *cell.Limit, shape uint32, st *cell.State) {
	p.a, p.b, p.blockedNS = st.A, st.B, st.BlockedNS
	p.code, p.periodNS, p.count, p.burst = shape, l.PeriodNS, uint32(l.Count), uint32(l.Burst)
	if ring := t.ring(p); len(st.Ring) != len(ring) || len(ring) > 0 && &st.Ring[0] != &ring[0] {
		t.setRing(p, st.Ring)
	}
}
