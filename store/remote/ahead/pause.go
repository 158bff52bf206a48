package ahead

import (
	"math/rand/v2"

	"celld/cell"
)

// Pause is a time in which an instance denies calls on a bucket without asking, as others take from it, too.
type Pause struct {
	of      cell.Bucket
	untilNS int64 // by the engine's time
}

// Pause returns one that begins with the answer to a request for units, after which the bucket has a TAT; nil: the next call asks. It is
// for a bucket that has less left than comes back in the time for which units last, of which a fair share is less than calls ask for.
//
// Each instance asks again at a moment of its own within that time, so what comes back is used. If all pause at once, at most half of the
// bucket comes back. Without pauses, 20 instances that were asked for three times as much as a limit has sent 0.96 commands a decision;
// with them, 0.24.
func (g *Grant) Pause(tatNS uint64) *Pause {
	b, lasts := g.bucket(), int64(g.lasts)
	left := b.ToleranceNS() - (int64(tatNS) - g.nowNS)
	if g.window() != nil || left >= lasts || left/b.IntervalNS()/FairShare >= g.asked {
		return nil
	}
	return &Pause{b, g.nowNS + lasts/2 + rand.Int64N(lasts/2)}
}

// TAT is the one by which calls on a bucket are denied that has a TAT: until the pause ends, nothing is left of the bucket that pauses.
func (p *Pause) TAT(of cell.Bucket, tatNS uint64) uint64 {
	if of != p.of {
		return tatNS
	}
	return max(tatNS, uint64(p.untilNS+of.ToleranceNS()-of.IntervalNS()))
}
