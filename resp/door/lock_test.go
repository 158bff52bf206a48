package door

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// Batches run beside each other, and who has the lock runs alone.
func TestLock(t *testing.T) {
	x := newLock()
	var shared, alone atomic.Int32
	var all sync.WaitGroup
	for n := range uint8(8) {
		all.Go(func() {
			for range 200 {
				x.Lane(n).RLock()
				shared.Add(1)
				if alone.Load() != 0 {
					t.Error("a batch runs beside a script")
				}
				shared.Add(-1)
				x.Lane(n).RUnlock()
				if n == 0 {
					x.Lock()
				} else if !x.TryLock() {
					continue
				}
				if alone.Add(1) != 1 || shared.Load() != 0 {
					t.Error("a script does not run alone")
				}
				alone.Add(-1)
				x.Unlock()
			}
		})
	}
	all.Wait()
}

// TryLock leaves nothing locked where it fails, whichever lane is held.
func TestTryLock(t *testing.T) {
	x := make(Lock, 4)
	for n := range uint8(5) {
		held := x.Lane(n)
		if held != &x[n%4] {
			t.Errorf("lane %d", n)
		}
		held.RLock()
		if x.TryLock() {
			t.Errorf("lane %d is held", n)
		}
		held.RUnlock()
		if !x.TryLock() {
			t.Errorf("after lane %d was held, something is locked", n)
		}
		x.Unlock()
	}
}

// Lanes of two cores share no cache line.
func TestLaneSize(t *testing.T) {
	if size := unsafe.Sizeof(Lane{}); size%64 != 0 {
		t.Errorf("%d bytes", size)
	}
}
