package memory_test

import (
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// BenchmarkTake is a call on one of 1,000 keys that are there: what a call costs beside cache misses.
func BenchmarkTake(b *testing.B) {
	for _, c := range []struct {
		name   string
		stepNS int64
		limits []string
	}{
		{"gcra", 1, []string{"2000000000/1h"}},
		{"window", 1, []string{"2000000000/1h,algo=window"}},
		{"large", 1, []string{"9007199254740991/month"}},
		{"log", second / 10_000, []string{"100/1s,algo=log"}}, // ten of them are remembered
		{"two", 1, []string{"2000000000/1h", "2000000000/1d,algo=window"}},
		{"denied", 1, []string{"1/1h"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := memory.New(memory.Options{})
			keys := memtest.Keys16(1000)
			var parsed []cell.Limit
			for _, text := range c.limits {
				l, err := cell.ParseLimit(text)
				if err != nil {
					b.Fatal(err)
				}
				parsed = append(parsed, l)
			}
			list := make([]store.Call, len(c.limits))
			passed := 0
			take := func(i int) {
				for j := range list {
					list[j] = store.Call{Key: keys[i%len(keys)], Limit: &parsed[j]}
				}
				taken, err := s.Take(list, store.TakeOptions{Cost: 1}, memtest.At(t0+int64(i)*c.stepNS))
				if err != nil {
					b.Fatal(err)
				}
				if !taken.Limited {
					passed++
				}
			}
			for i := range keys {
				take(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				take(len(keys) + i)
			}
			if all := passed == b.N+len(keys); all == (c.name == "denied") {
				b.Fatalf("%d of %d have passed", passed, b.N)
			}
		})
	}
}
