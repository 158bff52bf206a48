package script

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"celld/resp/script/budget"
)

// peakHeap runs something, and returns by how much the heap was larger meanwhile than before.
func peakHeap(do func()) (peak uint64) {
	runtime.GC()
	base := budget.HeapBytes()
	var most atomic.Uint64
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			most.Store(max(most.Load(), budget.HeapBytes()))
			select {
			case <-done:
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	})
	do()
	close(done)
	looking.Wait()
	return most.Load() - min(base, most.Load())
}
