package cell

import (
	"math"

	"celld/cell/lease"
)

// Algo is how a limit counts. Each algorithm is a file of its name.
type Algo uint8

const (
	GCRA   Algo = iota // a bucket that flows back evenly, as CL.THROTTLE's
	Window             // a counter for each window of time
	Slide              // counters of the last windows, weighted or summed
	Log                // the calls themselves
	Conc               // leases: the calls in flight
	Warmup             // a bucket of one whose rate is low after a rest, as Guava's SmoothWarmingUp: gcra with warmup=
)

func (a Algo) String() string { return algorithms[a].name }

// Bookable reports that calls of its limits can be booked ahead, see Limit.Bookable.
func (a Algo) Bookable() bool { return algorithms[a].can&bookable != 0 }

// Algos is how many algorithms there are, from 0 on.
func Algos() int { return len(algorithms) }

// algorithm is the arithmetic of a limit. Nothing else asks which algorithm a limit counts by. Instants are Unix ns. Values that are passed
// by value stay on the stack of their owner.
type algorithm interface {
	// prepare computes a limit's Capacity and bucket. It returns false where that does not fit int64 ns.
	prepare(s Shape, p Params) (capacity int64, b Bucket, ok bool)
	// share changes p to the parameters of one of n that share a limit. The count is already that of the share.
	share(s Shape, p Params, n int64) Params

	// decide decides on a call, and takes what passes or is forced. A cost above the count comes only by force or with anyCost.
	decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome
	// book takes a cost above 0 at the first moment from now on at which it passes, and returns that moment, or Never. It only replaces a
	// ring, so that copies of a state stay as they are.
	book(l *Limit, st *State, now, cost uint64) (at uint64)
	// holds reports whether a state can hold a call that is forced.
	holds(l *Limit, st *State, nowNS, cost int64) bool
	// fit makes room to take one more call of a cost, and returns by how many words the ring has grown. fits reports whether there is room.
	fit(l *Limit, st *State, nowNS, cost int64) (words int)
	fits(l *Limit, st State) bool
	// end is when nothing of a state is left except a block; 0: now.
	end(a, b uint64, ring []uint64, period uint64) uint64

	// whole is Limit.WholeNS's.
	whole(l *Limit, st *State, now uint64) uint64

	// give gives back up to n, the latest first, and returns how much that was.
	give(l *Limit, st *State, nowNS, n int64) int64
	// giveBack gives back the costs of leases, each at its ExpiryNS. It may change the order of these.
	giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease)
	// takenNS is what a lease remembers of its call, which may have counted later than at nowNS: another reader of the clock was ahead.
	// passedNS computes from it when the call passed, as far as is known.
	takenNS(l *Limit, st *State, nowNS int64) uint64
	passedNS(l *Limit, takenNS uint64) uint64

	// carry turns a state that another limit of this algorithm has left into a state of l. The Shapes are the same, except with anyShape.
	carry(l *Limit, st *State, old *Limit, nowNS int64)
	// shift adds ns to every instant, and shiftBack undoes that.
	shift(s Shape, st *State, ns int64)
	shiftBack(s Shape, st *State, ns int64)

	// appendText writes a state as text, and read reads it: what stands between the limit and the block.
	appendText(b []byte, s Shape, st State) []byte
	read(r *stateReader, l *Limit) State
}

// ability is what an algorithm can do beyond that.
type ability uint16

const (
	bookable   ability = 1 << iota // see Limit.Bookable
	additive                       // see Limit.Additive
	bucketOnly                     // see Limit.IsBucket
	hasRing                        // see Shape.HasRing
	ofLeases                       // see Shape.HoldsLeases
	ofCalls                        // see Shape.KeepsCalls
	anyCost                        // a call of a cost above the count may pass
	anyShape                       // it carries a state from one shape to another
	ofBursts                       // see Shape.HasBurst
	large                          // counts go to MaxCost, at any rate
)

// kind is an algorithm with its name.
type kind struct {
	name string
	can  ability
	algorithm
}

// algorithms are 8 at most: an Algo is three bits of a Shape.Code.
var algorithms = []kind{
	GCRA:   {"gcra", bookable | additive | anyCost | bucketOnly | ofBursts, &gcra{}},
	Window: {"window", bookable | large, &window{}},
	Slide:  {"slide", large, &slide{}},
	Log:    {"log", hasRing | ofCalls, &log{}},
	Conc:   {"conc", hasRing | ofLeases | anyShape, &conc{}},
	Warmup: {"warmup", bookable | additive | anyCost | anyShape | ofBursts, &warmup{}},
}

var (
	subWindows = kind{"slide", hasRing | large, &buckets{}}
	companion  = kind{"", hasRing | ofLeases, &held{}}
)

// kind is the algorithm of a state of this shape.
func (s *Shape) kind() *kind {
	switch {
	case s.Leases:
		return &companion
	case s.Buckets > 0:
		return &subWindows
	}
	return &algorithms[s.Algo]
}

func (s *Shape) can(a ability) bool { return s.kind().can&a != 0 }

// plain is what most algorithms do: they need no ring and no parameter except the count, cannot be booked, and State.A is their only
// instant.
type plain struct{}

func (*plain) prepare(_ Shape, p Params) (capacity int64, b Bucket, ok bool) {
	return p.Count, Bucket{capacity: p.Count}, true
}

func (*plain) share(_ Shape, p Params, _ int64) Params { return p }

func (*plain) fit(_ *Limit, _ *State, _, _ int64) int { return 0 }

func (*plain) book(*Limit, *State, uint64, uint64) (at uint64) { return Never }

func (*plain) holds(_ *Limit, _ *State, _, _ int64) bool { return true }

func (*plain) fits(*Limit, State) bool { return true }

func (*plain) whole(*Limit, *State, uint64) uint64 { return 0 }

func (*plain) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	sum := int64(0)
	for i := range from {
		sum = min(sum+from[i].Cost, math.MaxInt64/2)
	}
	if sum > 0 {
		l.Give(st, nowNS, sum)
	}
}

func (*plain) takenNS(_ *Limit, _ *State, nowNS int64) uint64 { return uint64(nowNS) }

func (*plain) passedNS(_ *Limit, takenNS uint64) uint64 { return takenNS }

func (*plain) carry(*Limit, *State, *Limit, int64) {}

func (*plain) shift(_ Shape, st *State, ns int64) { st.A = ShiftInstant(st.A, ns) }

func (*plain) shiftBack(s Shape, st *State, ns int64) { s.kind().shift(s, st, -ns) }
