package resp

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// countLanes is how many lanes there are for what each batch changes: one for each core, up to 64. A batch uses those of its
// scratch. In one place for all, each change would fetch the cache line from another core, which takes some 50 ns.
func countLanes() int { return min(1<<bits.Len(uint(runtime.GOMAXPROCS(0)-1)), 64) }

// laned is a count that batches on different cores add to.
type laned []lanedCount

type lanedCount struct {
	n atomic.Int64
	_ [56]byte // up to a cache line
}

func newLaned() laned { return make(laned, countLanes()) }

func (l laned) Add(lane uint8, n int64) { l[int(lane)&(len(l)-1)].n.Add(n) }

// Load adds up the lanes.
func (l laned) Load() (sum int64) {
	for i := range l {
		sum += l[i].n.Load()
	}
	return sum
}
