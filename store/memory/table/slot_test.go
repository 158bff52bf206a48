//go:build !race

package table

import (
	"sync"
	"sync/atomic"
	"testing"
)

// What is set under the lock is set, though calls without the lock begin and end meanwhile.
func TestSetInfoWhileOthersAreBusy(t *testing.T) {
	var e Slot
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			e.Info.Or(FlagBusy)
			e.Info.And(^uint64(FlagBusy))
		}
	})
	for value := range uint64(1 << 23) {
		if e.SetInfo(touchedMask, value); e.Info.Load()&^FlagBusy != value {
			t.Errorf("info is %x, want %x", e.Info.Load(), value)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}
