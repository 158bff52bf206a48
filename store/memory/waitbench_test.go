package memory_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// BenchmarkLineRate queues as many callers as one limit lets pass in 3 s, in real time. off/% is by how much what passes in a
// second differs from the limit.
func BenchmarkLineRate(b *testing.B) {
	for _, perSecond := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(perSecond), func(b *testing.B) {
			s := memory.New(memory.Options{MaxWaiters: 1 << 20})
			l := memtest.MustParse(b, fmt.Sprintf("%d/1s,burst=1", perSecond))
			for range b.N {
				n := 3 * perSecond
				var left atomic.Int64
				left.Store(int64(n))
				done := make(chan struct{})
				w := wakerFunc(func() {
					if left.Add(-1) == 0 {
						close(done)
					}
				})
				key, start := []byte(fmt.Sprint(b.N)), time.Now()
				for range n {
					reqs := []store.TakeRequest{{Calls: []store.Call{{Key: key, Limit: &l}},
						TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: 1 << 62}}}}
					if s.TakeBatch(reqs, memtest.At(start.UnixNano()), w) {
						w()
					}
				}
				<-done
				took := time.Since(start).Seconds()
				b.ReportMetric((float64(n-1)/float64(perSecond)/took-1)*100, "off/%")
			}
		})
	}
}

// BenchmarkWait is a call that comes into a line of so many and leaves it again.
func BenchmarkWait(b *testing.B) {
	for _, limit := range []string{"1/1h", "100/1h,algo=window"} {
		for _, waiters := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", limit, waiters), func(b *testing.B) {
				s := memory.New(memory.Options{MaxWaiters: 1 << 20})
				l := memtest.MustParse(b, limit)
				now := memtest.At(time.Now().UnixNano())
				join := func() *store.TakeRequest {
					reqs := [1]store.TakeRequest{{Calls: []store.Call{{Key: []byte("k"), Limit: &l}},
						TakeOptions: store.TakeOptions{Cost: l.Capacity(), Terms: &store.Terms{Mode: store.Wait, MaxNS: 1 << 62}}}}
					if s.TakeBatch(reqs[:], now, wakerFunc(func() {})) {
						b.Fatal("it does not wait")
					}
					return &reqs[0]
				}
				if _, err := s.Take([]store.Call{{Key: []byte("k"), Limit: &l}}, store.TakeOptions{Cost: l.Capacity(), Mode: cell.Force},
					now); err != nil {
					b.Fatal(err)
				}
				for range waiters {
					join()
				}
				for b.Loop() {
					s.Leave(join(), nil)
				}
			})
		}
	}
}
