package memory_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// However many take and release at once, under one key or two, no more than the count is in flight, and in the end all is free.
func TestASemaphoreInManyHands(t *testing.T) {
	s := memory.New(memory.Options{Shards: 4})
	l := limitOf(t, "3/1h,algo=conc")
	var inFlight [2]atomic.Int64
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 500 {
				first := (worker + i) % 2
				var calls []store.Call
				for _, key := range []int{first, 1 - first}[:1+i%2] {
					calls = append(calls, store.Call{Key: fmt.Append(nil, key), Limit: l})
				}
				terms := store.Terms{}
				taken, err := s.Take(calls, store.TakeOptions{Cost: 1, Terms: &terms}, memtest.At(t0))
				if err != nil {
					t.Error(err)
				}
				if taken.Limited {
					continue
				}
				for j := range calls {
					if inFlight[(first+j)%2].Add(1) > 3 {
						t.Error("more than the count")
					}
				}
				for j := range calls {
					inFlight[(first+j)%2].Add(-1)
				}
				if !memtest.Did(s.Release(calls[0].Key, terms.Lease, memtest.At(t0))) ||
					memtest.Did(s.Release(calls[0].Key, terms.Lease, memtest.At(t0))) {
					t.Error("not released, or twice")
				}
			}
		})
	}
	wait.Wait()
	if st := s.Stats(t0); st.Bytes != 0 || s.Len(t0) != 0 {
		t.Errorf("%d bytes are left", st.Bytes)
	}
}
