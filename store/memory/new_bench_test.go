//go:build !race

package memory_test

import (
	"testing"

	"celld/cell"
	"celld/store/memory"
)

// BenchmarkNew is a new key in batches of 64: into a table that grows from nothing, and through one of a million that is full, so
// that each evicts another. BenchmarkScale/…/keys=1000000/pass/one is a hit, to compare with.
//
//	go -C bench run . -rows '^cores-new-' -peers celld -rounds 5
func BenchmarkNew(b *testing.B) {
	limit, err := cell.ParseLimit("1/1m,burst=100000000")
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []struct {
		name string
		new  func(cell.Limit) *asker
	}{{"throttle", throttles}, {"take", takes}} {
		ask := func(s *memory.Store, from, n int) {
			a := kind.new(limit)
			for k := 0; k < n; k += 64 {
				for j := range 64 {
					a.set(j, uint64(from+k+j)*0x9E3779B97F4A7C15)
				}
				a.ask(s, min(64, n-k), t0)
			}
		}
		b.Run(kind.name+"/growing", func(b *testing.B) {
			s := memory.New(memory.Options{MaxKeys: 10_000_000})
			b.ResetTimer()
			ask(s, 0, b.N)
			b.StopTimer()
			if n := s.Len(t0); n != min(b.N, 10_000_000) {
				b.Fatal(n, "keys")
			}
		})
		b.Run(kind.name+"/flood", func(b *testing.B) {
			const keys = 1_000_000
			s := memory.New(memory.Options{MaxKeys: keys})
			ask(s, 0, keys)
			b.ResetTimer()
			ask(s, keys, b.N)
			b.StopTimer()
			if st := s.Stats(t0); s.Len(t0) != keys || st.Evicted != int64(b.N) {
				b.Fatalf("%d keys, %+v", s.Len(t0), st)
			}
		})
	}
}
