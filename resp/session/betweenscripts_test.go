package session

import (
	"testing"

	"celld/resp/gate"
)

// What is done between scripts is done while none can begin, and not while one is busy, which has let go of the lock.
func TestBetween(t *testing.T) {
	w := newWorld(t)
	if !w.Between(func() {
		if w.Execution.TryLock() {
			t.Error("scripts run meanwhile")
		}
	}) || !w.Execution.TryLock() {
		t.Fatal("it was not done, or never ended")
	}
	w.Execution.Unlock()
	w.Gate.Set(gate.Busy, true)
	if w.Between(func() { t.Error("it is done in the middle of a script") }) {
		t.Error("it says that it was done")
	}
}
