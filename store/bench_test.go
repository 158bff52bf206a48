package store_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"celld/store"
)

func BenchmarkThrottleHit(b *testing.B) {
	limit := mustLimit(b, 1<<30, 1000, 1) // never limited: every call stores
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s, keys := store.New(store.Options{MaxKeys: int64(n)}), keys16(n)
			for _, key := range keys {
				mustAllow(b, s, key, limit, t0)
			}
			s.ResetStats()
			b.ReportAllocs()
			b.ResetTimer()
			i := 0
			for range b.N {
				if i += 7919; i >= n { // a prime stride visits all keys, and no two neighbours in a row
					i -= n * (i / n)
				}
				mustAllow(b, s, keys[i], limit, t0)
			}
			b.StopTimer()
			if st := s.Stats(t0); st.Hits != int64(b.N) || st.Misses != 0 || st.Evicted != 0 || s.Len(t0) != n {
				b.Fatalf("measured something else: %+v, %d keys", st, s.Len(t0))
			}
		})
	}
}

func BenchmarkInsertEvict(b *testing.B) {
	limit := mustLimit(b, 5, 1, 3600) // lives past the end of the benchmark, so that nothing expires
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s := store.New(store.Options{MaxKeys: int64(n)})
			for _, key := range keys16(n) {
				mustAllow(b, s, key, limit, t0)
			}
			s.ResetStats()
			key := []byte("0123456789abcdef")
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				binary.BigEndian.PutUint64(key, uint64(i))
				mustAllow(b, s, key, limit, t0)
			}
			b.StopTimer()
			st := s.Stats(t0)
			if st.Misses != int64(b.N) || st.Evicted != int64(b.N) || st.Expired != 0 || s.Len(t0) != n {
				b.Fatalf("measured something else: %+v, %d keys", st, s.Len(t0))
			}
		})
	}
}

// BenchmarkHeap reports the heap bytes of a key, which OverheadBytes is taken from. It fills a store once, whatever b.N.
func BenchmarkHeap(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 1_500_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			var perKey float64
			for range b.N {
				perKey = heapBytesPerKey(b, n)
			}
			b.ReportMetric(perKey, "heapB/key")
			b.ReportMetric(perKey-16, "overheadB/key")
		})
	}
}
