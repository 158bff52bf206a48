//go:build !race

package store

import (
	"sync"
	"sync/atomic"
	"testing"
)

// What is set under the lock is set, though calls without the lock begin and end meanwhile.
func TestSetInfoWhileOthersAreBusy(t *testing.T) {
	var e slot
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			e.info.Or(flagBusy)
			e.info.And(^uint64(flagBusy))
		}
	})
	for value := range uint64(1 << 23) {
		if e.setInfo(touchedMask, value); e.info.Load()&^flagBusy != value {
			t.Errorf("info is %x, want %x", e.info.Load(), value)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}
