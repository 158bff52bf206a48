package cell

import (
	"math"
	"testing"
)

// pace spreads calls evenly: one of any cost passes as soon as those before it are paid for. State.A is when.
type pace struct{ plain }

// AddPace makes pace an algorithm until the test is over.
func AddPace(t *testing.T) {
	was := algorithms
	algorithms = append(algorithms[:len(was):len(was)], kind{"pace", bookable | anyCost, &pace{}})
	t.Cleanup(func() { algorithms = was })
}

func (*pace) prepare(s Shape, p Params) (capacity int64, b Bucket, ok bool) {
	return 1, Bucket{capacity: 1, intervalNS: p.intervalNS(s)}, true
}

func (*pace) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) (o outcome) {
	now := uint64(nowNS)
	free := max(st.A, now)
	if cost > 0 && mode != Force && free > now {
		o.retryNS = free - now
	} else if cost > 0 && mode != Peek {
		free += uint64(l.bucket.intervalNS * cost)
		st.A = free
	}
	if free == now {
		o.remaining = 1
	}
	o.resetNS = free - now
	return o
}

func (p *pace) book(l *Limit, st *State, now, cost uint64) (at uint64) {
	was := st.A
	p.decide(l, st, int64(now), int64(cost), Force)
	return max(was, now)
}

func (*pace) end(free, _ uint64, _ []uint64, _ uint64) uint64 { return free }

func (*pace) give(l *Limit, st *State, nowNS, n int64) int64 {
	n = min(n, int64(debtOf(st.A, uint64(nowNS)))/l.bucket.intervalNS)
	st.A -= uint64(n * l.bucket.intervalNS)
	return n
}

func (*pace) appendText(b []byte, _ Shape, st State) []byte { return appendField(b, "free", st.A) }

func (*pace) read(r *stateReader, _ *Limit) State { return State{A: r.number("free", math.MaxInt64)} }
