//go:build !race

package memory

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"celld/cell"
	"celld/store"
)

// twoPages are of a file, so that the second can be dropped: whoever reads it next waits for the kernel to map it again.
func twoPages(t *testing.T) (pages []byte, drop func()) {
	t.Helper()
	page := os.Getpagesize()
	path := filepath.Join(t.TempDir(), "pages")
	if err := os.WriteFile(path, make([]byte, 2*page), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pages, err = syscall.Mmap(int(file.Fd()), 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(pages) })
	return pages, func() {
		if err := syscall.Madvise(pages[page:], syscall.MADV_DONTNEED); err != nil {
			t.Error(err)
		}
	}
}

// A call has found its key's slot, and waits for memory before it reads the state. Meanwhile its key goes, and the slot and the
// limit entry become those of a key that is used up. The call is not denied for that.
func TestASlotBecomesAnotherKeysDuringACall(t *testing.T) {
	const turns, most = 50_000, 1 << 20
	bucket, err := cell.NewBucket(most-1, 1, 3600)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := cell.ParseLimit("1048576/1h")
	if err != nil {
		t.Fatal(err)
	}
	pages, drop := twoPages(t)
	second, nothing := len(pages)/2, func() {}
	for name, tt := range map[string]struct {
		key  []byte
		call func(s *Store, key []byte, cost int64, before func()) (limited bool)
	}{
		// is reads the key's second half
		"throttle": {pages[second-8 : second+8], func(s *Store, key []byte, cost int64, before func()) bool {
			reqs := []store.Request{{Key: key, Bucket: bucket, Quantity: cost}}
			reqs[0].Hash = s.Hash(key)
			before()
			s.ThrottleAll(reqs, nil, store.Access{NowNS: 1})
			return reqs[0].Decision.Limited
		}},
		"take": {make([]byte, 16), func(s *Store, key []byte, cost int64, before func()) bool { // same reads the limit's period
			limit := (*cell.Limit)(unsafe.Pointer(&pages[second-int(unsafe.Offsetof(parsed.PeriodNS))]))
			reqs := []store.TakeRequest{{Calls: []store.Call{{Key: key, Limit: limit}}, TakeOptions: store.TakeOptions{Cost: cost}}}
			reqs[0].Hash = s.Hash(key)
			before()
			s.takeAll(reqs, nil, store.Access{NowNS: 1}, nil)
			return reqs[0].Taken.Limited
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "take" {
				*(*cell.Limit)(unsafe.Pointer(&pages[second-int(unsafe.Offsetof(parsed.PeriodNS))])) = parsed
			}
			s, other := New(Options{Shards: 1}), []byte("used up")
			done := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					s.Delete(tt.key, 1)
					tt.call(s, other, most, nothing)
					s.Delete(other, 1)
					tt.call(s, tt.key, 1, nothing)
				}
			})
			for turn := range turns {
				if tt.call(s, tt.key, 1, drop) {
					t.Errorf("denied in turn %d", turn)
					break
				}
			}
			close(done)
			wg.Wait()
		})
	}
}

// A call has read the state, and waits for memory before it decides. Meanwhile others pass. All are counted.
func TestOthersPassDuringACall(t *testing.T) {
	const turns, most = 20_000, 1 << 20
	parsed, err := cell.ParseLimit("1048576/1h")
	if err != nil {
		t.Fatal(err)
	}
	pages, drop := twoPages(t)
	bucket := unsafe.Sizeof(parsed) - unsafe.Sizeof(cell.Bucket{}) // only Decide reads it
	limit := (*cell.Limit)(unsafe.Pointer(&pages[len(pages)/2-int(bucket)]))
	*limit = parsed
	s := New(Options{Shards: 1})
	take := func() int64 {
		calls := []store.Call{{Key: []byte("k"), Limit: limit}}
		_, _ = s.Take(calls, store.TakeOptions{Cost: 1}, store.Access{NowNS: 1})
		return calls[0].Decision.Remaining
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range turns {
				drop()
				take()
			}
		})
	}
	wg.Wait()
	if left := take(); left != most-2*turns-1 {
		t.Errorf("%d are left, want %d", left, most-2*turns-1)
	}
}

// A call has found its key's slot when all keys are flushed. It passes under the new key.
func TestAFlushDuringACall(t *testing.T) {
	const turns = 50_000
	limit, err := cell.ParseLimit("1048576/1h")
	if err != nil {
		t.Fatal(err)
	}
	pages, drop := twoPages(t)
	s, key := New(Options{Shards: 1}), pages[len(pages)/2-8:][:16]
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			s.Flush()
		}
	})
	for turn := range turns {
		reqs := []store.TakeRequest{{Calls: []store.Call{{Key: key, Limit: &limit}}, TakeOptions: store.TakeOptions{Cost: 1}}}
		reqs[0].Hash = s.Hash(key)
		drop()
		if s.takeAll(reqs, nil, store.Access{NowNS: 1}, nil); reqs[0].Taken.Granted != 1 {
			t.Errorf("turn %d: %+v", turn, reqs[0].Taken)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}
