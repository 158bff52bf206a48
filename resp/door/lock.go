package door

import (
	"sync"

	"celld/resp/stats"
)

// Lock is one that batches of commands hold shared, and EXEC and scripts alone. A batch locks its own lane, and who takes it alone locks
// all of them.
//
//	lock.Lane(n).RLock() // a batch of commands
//	lock.Lock()          // EXEC, or a script
type Lock []Lane

// Lane is a part of a Lock.
type Lane struct {
	sync.RWMutex
	_ [40]byte // up to a cache line
}

// newLock returns a Lock with a lane for each core.
func newLock() Lock { return make(Lock, stats.Lanes()) }

// Lane returns the lane of a number, which others may have, too.
func (x Lock) Lane(n uint8) *Lane { return &x[int(n)&(len(x)-1)] }

// Lock returns when nobody holds a lane, and keeps all others out.
func (x Lock) Lock() {
	for i := range x {
		x[i].Lock()
	}
}

// TryLock is Lock where that need not wait.
func (x Lock) TryLock() bool {
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

// Unlock ends Lock.
func (x Lock) Unlock() {
	for i := range x {
		x[i].Unlock()
	}
}
