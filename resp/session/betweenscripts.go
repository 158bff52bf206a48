package session

import (
	"time"

	"celld/resp/gate"
)

// BetweenScripts locks execution alone, in a round of its own where replies wait for the disk. Call what it returns at the end. A disk that
// refuses the changes is the file's trouble: they are written later.
//
// A script that is busy lets go of the lock. To change users or policies then would change them in its middle: clients who try that get
// -BUSY, and so this waits until the script has ended.
func (srv *Service) BetweenScripts() (end func()) {
	for told := false; ; time.Sleep(10 * time.Millisecond) {
		if srv.Gate.Has(gate.Busy) {
			if !told {
				srv.Log.Info("new settings wait for the script that runs; SCRIPT KILL ends one that has changed nothing")
			}
			told = true
			continue
		}
		if srv.Synchronous {
			srv.Persist.Begin()
		}
		srv.Execution.Lock()
		end = func() {
			srv.Execution.Unlock()
			if srv.Synchronous {
				_ = srv.Commit()
			}
		}
		if !srv.Gate.Has(gate.Busy) { // nor can it be set while this has the lock
			return end
		}
		end()
	}
}

// Between calls do while no transaction or script is in its middle. While a script is busy it returns false.
func (srv *Service) Between(do func()) (did bool) {
	lane := srv.Execution.Lane(0)
	lane.RLock()
	defer lane.RUnlock()
	if srv.Gate.Has(gate.Busy) {
		return false
	}
	do()
	return true
}
