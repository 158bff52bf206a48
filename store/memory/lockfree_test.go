package memory_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// abreast runs fn in two goroutines, which begin each turn at the same instant, or nearly so.
func abreast(turns int, fn func(i, turn int)) {
	var arrived atomic.Int64
	parallel(2, func(i int) {
		for turn := range turns {
			arrived.Add(1)
			for arrived.Load() < int64(2*(turn+1)) {
				runtime.Gosched()
			}
			fn(i, turn)
		}
	})
}

// A call with block= is denied while another, without, is about to pass: the block stays.
func TestACallThatPassesKeepsTheBlockOfAnother(t *testing.T) {
	const each = 4
	turns := 2000
	if celldtest.Thorough {
		turns = 20_000
	}
	s := memory.New(memory.Options{})
	limits := []string{"10/1m", "10/1m,block=1h"}
	var batches [2][]store.TakeRequest
	for i := range batches {
		l := memtest.MustParse(t, limits[i])
		for range each {
			batches[i] = append(batches[i], store.TakeRequest{
				Calls: []store.Call{{Limit: &l}}, TakeOptions: store.TakeOptions{Cost: int64(1 + 9*i)},
			})
		}
	}
	take := func(i, turn int) []store.TakeRequest {
		for j := range batches[i] {
			batches[i][j].Calls[0].Key = fmt.Append(nil, turn, j)
		}
		s.TakeBatch(batches[i], memtest.At(t0), nil)
		return batches[i]
	}
	for turn := range turns {
		take(0, turn)
	}
	abreast(turns, func(i, turn int) { take(i, turn) })
	for turn := range turns {
		for j, r := range take(0, turn) {
			if !r.Taken.Limited || r.Taken.RetryAfterNS != uint64(hour) {
				t.Fatalf("turn %d, %d: after a block, %+v", turn, j, r.Taken)
			}
		}
	}
}

// SetCapacity goes by the time of calls that took no lock, too.
func TestSetLimitsAfterHits(t *testing.T) {
	s := memory.New(memory.Options{})
	bucket := memtest.MustLimit(t, 9, 1, 3600)
	memtest.MustAllow(t, s, []byte("k"), bucket, t0)
	memtest.MustPut(t, s, "dead", memtest.Live(t0, second), t0)
	memtest.MustAllow(t, s, []byte("k"), bucket, t0+2*second)
	memtest.SetMaxKeys(&s.Capacity, 1)
	if st := s.Stats(t0 + 2*second); st.Evicted != 0 || st.Expired != 1 {
		t.Errorf("%d evicted, %d expired, want 0 and 1", st.Evicted, st.Expired)
	}
}
