package resp

import (
	"math/bits"
	"runtime"
	"sync"
)

// execution is a lock that batches of commands hold shared, and EXEC and scripts alone. It has a lane for each core, and a batch
// takes that of its scratch: so batches on different cores do not share a cache line. Who takes it alone takes all lanes.
type execution []executionLane

type executionLane struct {
	sync.RWMutex
	_ [40]byte // up to a cache line
}

// newExecution has a lane for each core, up to 64.
func newExecution() execution {
	return make(execution, min(1<<bits.Len(uint(runtime.GOMAXPROCS(0)-1)), 64))
}

func (x execution) lane(n uint8) *executionLane { return &x[int(n)&(len(x)-1)] }

func (x execution) Lock() {
	for i := range x {
		x[i].Lock()
	}
}

// TryLock is Lock where that need not wait.
func (x execution) TryLock() bool {
	for i := range x {
		if !x[i].TryLock() {
			for j := range i {
				x[j].Unlock()
			}
			return false
		}
	}
	return true
}

func (x execution) Unlock() {
	for i := range x {
		x[i].Unlock()
	}
}
