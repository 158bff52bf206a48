package stats

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// Lanes is how many lanes there are for what each batch changes: one for each core, up to 64. A batch uses those of its
// scratch. In one place for all, each change would fetch the cache line from another core, which takes some 50 ns.
func Lanes() int { return min(1<<bits.Len(uint(runtime.GOMAXPROCS(0)-1)), 64) }

// Counter is a count with a lane for each core, to which batches on different cores add.
type Counter []laneCount

type laneCount struct {
	n atomic.Int64
	_ [56]byte // up to a cache line
}

// NewCounter returns a count of 0.
func NewCounter() Counter { return make(Counter, Lanes()) }

// Add adds n in a lane, which may be any number.
func (l Counter) Add(lane uint8, n int64) { l[int(lane)&(len(l)-1)].n.Add(n) }

// Load adds up the lanes.
func (l Counter) Load() (sum int64) {
	for i := range l {
		sum += l[i].n.Load()
	}
	return sum
}
