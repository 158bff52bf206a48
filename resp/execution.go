package resp

import (
	"sync"

	"celld/resp/stats"
)

// execution is a lock that batches of commands hold shared, and EXEC and scripts alone. A batch locks its own lane, and
// who takes it alone locks all of them.
type execution []executionLane

type executionLane struct {
	sync.RWMutex
	_ [40]byte // up to a cache line
}

func newExecution() execution { return make(execution, stats.Lanes()) }

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
