package resp

import (
	"sync"
	"time"

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

// betweenScripts locks execution alone, in a round of its own where replies wait for the disk. Call what it returns at the end. A disk that refuses
// the changes is the file's trouble: they are written later.
//
// A script that is busy lets go of the lock. To change users or policies then would change them in its middle: clients who try that get -BUSY, and
// so this waits until the script has ended.
func (srv *service) betweenScripts() (end func()) {
	for told := false; ; time.Sleep(10 * time.Millisecond) {
		if srv.gate.has(gateBusy) {
			if !told {
				srv.log.Info("the reload waits for the script that runs; SCRIPT KILL ends one that has changed nothing")
			}
			told = true
			continue
		}
		if srv.synchronous {
			srv.persist.Begin()
		}
		srv.execution.Lock()
		end = func() {
			srv.execution.Unlock()
			if srv.synchronous {
				_ = srv.commit()
			}
		}
		if !srv.gate.has(gateBusy) { // nor can it be set while this has the lock
			return end
		}
		end()
	}
}
