//go:build !race

package memory

import (
	"sync"
	"sync/atomic"
	"testing"

	"celld/cell"
	"celld/store"
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

// Two callers pass under one key all they can. Where one has read a TAT that the other changes, it does not store its own.
func TestTwoPassAtOnce(t *testing.T) {
	const turns, most = 1 << 20, 1 << 30
	bucket, err := cell.NewBucket(most-1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Shards: 1})
	pass := func() cell.Decision {
		d, _ := s.Throttle([]byte("k"), bucket, 1, store.Access{NowNS: 1})
		return d
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range turns {
				pass()
			}
		})
	}
	wg.Wait()
	if left := pass().Remaining; left != most-2*turns-1 {
		t.Errorf("%d are left, want %d", left, most-2*turns-1)
	}
}
