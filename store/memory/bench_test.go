//go:build !race

package memory_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"celld/cell"
	"celld/cell/lease"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// A benchmark of hits makes its keys in place: a slice of a million keys would cost as many cache misses as the store.
func setBenchKey(key []byte, i int) { binary.LittleEndian.PutUint64(key, uint64(i)) }

// nextBenchKey goes through n keys by a prime stride, which visits all of them, and no two neighbours in a row.
func nextBenchKey(i, n int) int {
	if i += 7919; i >= n {
		i %= n
	}
	return i
}

// hitStore returns a store of n keys, which is full with a million, and a limit that never limits, so that every call stores.
func hitStore(b *testing.B, n int) (*memory.Store, cell.Bucket) {
	limit := memtest.MustLimit(b, 1<<30, 1000, 1)
	s, key := memory.New(memory.Options{}), []byte("........:a client")[:16]
	for i := range n {
		setBenchKey(key, i)
		memtest.MustAllow(b, s, key, limit, t0)
	}
	return s, limit
}

func expectHits(b *testing.B, s *memory.Store, n int) {
	b.StopTimer()
	if st := s.Stats(t0); st.Hits != int64(b.N) || st.Misses != int64(n) || st.Evicted != 0 || s.Len(t0) != n {
		b.Fatalf("measured something else: %+v, %d keys", st, s.Len(t0))
	}
}

func BenchmarkThrottleHit(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s, limit := hitStore(b, n)
			key := []byte("........:a client")[:16]
			b.ReportAllocs()
			b.ResetTimer()
			i := 0
			for range b.N {
				i = nextBenchKey(i, n)
				setBenchKey(key, i)
				memtest.MustAllow(b, s, key, limit, t0)
			}
			expectHits(b, s, n)
		})
	}
}

// BenchmarkThrottleBatch is the same in batches of 64; the time is that of one decision.
func BenchmarkThrottleBatch(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s, limit := hitStore(b, n)
			reqs := make([]store.Request, 64)
			for j := range reqs {
				reqs[j] = store.Request{Key: []byte("........:a client")[:16], Bucket: limit, Quantity: 1}
			}
			b.ReportAllocs()
			b.ResetTimer()
			i := 0
			for done := 0; done < b.N; done += len(reqs) {
				reqs = reqs[:min(len(reqs), b.N-done)]
				for j := range reqs {
					i = nextBenchKey(i, n)
					setBenchKey(reqs[j].Key, i)
				}
				s.ThrottleBatch(reqs, memtest.At(t0), nil)
			}
			expectHits(b, s, n)
		})
	}
}

func BenchmarkInsertEvict(b *testing.B) {
	limit := memtest.MustLimit(b, 5, 1, 3600) // lives past the end of the benchmark, so that nothing expires
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s := memory.New(memory.Options{MaxKeys: int64(n)})
			for _, key := range memtest.Keys16(n) {
				memtest.MustAllow(b, s, key, limit, t0)
			}
			key := []byte("0123456789abcdef")
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				binary.BigEndian.PutUint64(key, uint64(i))
				memtest.MustAllow(b, s, key, limit, t0)
			}
			b.StopTimer()
			st := s.Stats(t0)
			if st.Misses != int64(n+b.N) || st.Evicted != int64(b.N) || st.Expired != 0 || s.Len(t0) != n {
				b.Fatalf("measured something else: %+v, %d keys", st, s.Len(t0))
			}
		})
	}
}

// BenchmarkHeap reports the heap bytes of a key, which OverheadBytes is taken from. It fills a store once, whatever b.N.
func BenchmarkHeap(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 1_500_000, 10_000_000} {
		for _, keyLen := range []int{16, 40} {
			b.Run(fmt.Sprintf("keys=%d/len=%d", n, keyLen), func(b *testing.B) {
				var perKey float64
				for range b.N {
					perKey, _ = heapPerKey(b, n, keyLen, throttled(b))
				}
				b.ReportMetric(perKey, "heapB/key")
				b.ReportMetric(perKey-float64(keyLen), "overheadB/key")
			})
		}
	}
}

// BenchmarkPause reports the longest single call while a store grows to ten million keys, while a million keys that
// have all died give their room to others, and while a sweep takes such a million away; and how long it takes that 65,536 leases of
// a key end at once.
func BenchmarkPause(b *testing.B) {
	limit := memtest.MustLimit(b, 5, 1, 3600)
	insert := func(b *testing.B, s *memory.Store, from, n int, nowNS int64) (longest time.Duration) {
		key := []byte("........:a client")[:16]
		for i := range n {
			setBenchKey(key, from+i)
			start := time.Now()
			memtest.MustAllow(b, s, key, limit, nowNS)
			longest = max(longest, time.Since(start))
		}
		return longest
	}
	report := func(b *testing.B, longest time.Duration) {
		b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	}
	b.Run("growing", func(b *testing.B) {
		for range b.N {
			s := memory.New(memory.Options{MaxKeys: 10_000_000})
			report(b, insert(b, s, 0, 10_000_000, t0))
			if held := s.Len(t0); held != 10_000_000 {
				b.Fatalf("%d keys", held)
			}
		}
	})
	b.Run("replacing", func(b *testing.B) {
		for range b.N {
			s := memory.New(memory.Options{})
			insert(b, s, 0, 1_000_000, t0)
			report(b, insert(b, s, 1_000_000, 1_000_000, t0+3600*second))
			if st := s.Stats(t0); st.Expired != 1_000_000 || st.Evicted != 0 {
				b.Fatalf("%+v", st)
			}
		}
	})
	b.Run("sweeping", func(b *testing.B) {
		for range b.N {
			s := memory.New(memory.Options{})
			insert(b, s, 0, 1_000_000, t0)
			var longest time.Duration
			for more := true; more; {
				start := time.Now()
				more = s.Sweep(t0 + 3600*second)
				longest = max(longest, time.Since(start))
			}
			report(b, longest)
			if held := s.Len(t0); held != 0 {
				b.Fatalf("%d keys", held)
			}
		}
	})
	leases := func(b *testing.B, limit string, keys, each int) *memory.Store {
		s := memory.New(memory.Options{MaxKeys: int64(2 * keys)})
		l := limitOf(b, limit)
		terms := store.Terms{LeaseNS: second}
		if l.Algo == cell.Conc {
			terms.LeaseNS = 0
		}
		for k := range keys {
			calls := []store.Call{{Key: fmt.Appendf(nil, "key:%d", k), Limit: l}}
			for range each {
				if taken, err := s.Take(calls, store.TakeOptions{Cost: 1, Terms: &terms}, memtest.At(t0)); err != nil || taken.Limited {
					b.Fatal(taken, err)
				}
			}
		}
		return s
	}
	for _, limit := range []string{"2000000/1s,algo=conc", "2000000/1h", "2000000/1h,algo=window", "2000000/1h,algo=slide,buckets=60",
		"2000000/1h,algo=log"} {
		b.Run("leases of one key/"+limit, func(b *testing.B) {
			s := leases(b, limit, 1, lease.Max)
			start := time.Now()
			s.Take([]store.Call{{Key: []byte("key:0"), Limit: limitOf(b, limit)}}, store.TakeOptions{}, memtest.At(t0+2*second))
			report(b, time.Since(start))
		})
	}
	b.Run("leases of a million keys", func(b *testing.B) {
		s := leases(b, "5/1s,algo=conc", 1_000_000, 1)
		var longest time.Duration
		for more := true; more; {
			start := time.Now()
			more = s.Sweep(t0 + 2*second)
			longest = max(longest, time.Since(start))
		}
		report(b, longest)
	})
}
