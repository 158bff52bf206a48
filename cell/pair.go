package cell

import "math"

// A window and a slide keep two numbers in State.B: what was used in their last window of time, and in the one before it. Nearly always
// both are small, and State.B is before<<32 | used, with its highest bit 0. Otherwise that bit is 1, the rest is used, and before is in a
// ring of one word; without a ring it is 0. A ring is never changed, but replaced: so copies of a state stay as they are. It is kept when
// the numbers are small again.
const (
	wide       = 1 << 63
	mostBefore = math.MaxInt32
)

// pair returns both numbers.
func (st *State) pair() (used, before uint64) {
	if st.B < wide {
		return st.B & math.MaxUint32, st.B >> 32
	}
	if len(st.Ring) > 0 {
		before = st.Ring[0]
	}
	return st.B &^ wide, before
}

// setPair stores both numbers, each of which is mostUsed at most.
func (st *State) setPair(used, before uint64) {
	if used > math.MaxUint32 || before > mostBefore {
		st.setWide(used, before)
		return
	}
	st.B = before<<32 | used
}

//go:noinline
func (st *State) setWide(used, before uint64) {
	st.B = wide | used
	if len(st.Ring) > 0 && st.Ring[0] == before || len(st.Ring) == 0 && before == 0 {
		return
	}
	st.Ring = []uint64{before}
}

// fitPair makes a ring if there is none, and returns by how many words it has grown.
func (st *State) fitPair() (words int) {
	if len(st.Ring) > 0 {
		return 0
	}
	_, before := st.pair()
	st.Ring = []uint64{before}
	return 1
}
