//go:build !race

package shard_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"

	"pgregory.net/rapid"
)

// Whatever is renamed while a copy is made, each limit that is there all the while is told, under some name, and no name twice.
func TestExportDuringRenames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New(memory.Options{Shards: rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "shards")})
		const keys = 1500 // several parts in each shard
		for i := range keys {
			memtest.MustPut(t, s, fmt.Sprint(i), store.Value{TAT: uint64(t0 + second + int64(i))}, t0)
		}
		overwritten := map[uint64]bool{}
		tat := func(key string) uint64 {
			st, _ := s.Get([]byte(key), memtest.Untouched(t0))
			return st.TAT
		}
		exports := rapid.IntRange(1, 2).Draw(t, "exports")
		told := make([]map[string]uint64, exports)
		at, more := make([]memory.Position, exports), make([]bool, exports)
		for i := range at {
			at[i], more[i], told[i] = s.StartExport(), true, map[string]uint64{}
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		fresh := uint64(t0 + 1000*second)
		for going := true; going; {
			going = false
			for i := range at {
				if !more[i] || random.IntN(2) == 0 && exports > 1 {
					going = going || more[i]
					continue
				}
				at[i], more[i] = s.Export(at[i], t0, func(key []byte, st store.Value) {
					if _, twice := told[i][string(key)]; twice {
						t.Fatalf("%q is told twice", key)
					}
					told[i][string(key)] = st.TAT
				})
				going = going || more[i]
			}
			for range random.IntN(40) {
				from, to := fmt.Sprint(random.IntN(keys)), fmt.Sprint(random.IntN(keys*2))
				if gone := tat(to); gone > 0 && from != to && tat(from) > 0 {
					overwritten[gone] = true
				}
				s.Rename([]byte(from), []byte(to), store.Access{NowNS: t0})
				if random.IntN(3) == 0 { // the name comes back
					if gone := tat(from); gone > 0 {
						overwritten[gone] = true
					}
					fresh++
					memtest.MustPut(t, s, from, store.Value{TAT: fresh}, t0)
					overwritten[fresh] = true // it was not there all the while
				}
			}
		}
		for i, told := range told {
			s.EndExport(at[i])
			found := map[uint64]bool{}
			for _, tat := range told {
				found[tat] = true
			}
			for n := range keys {
				if tat := uint64(t0 + second + int64(n)); !found[tat] && !overwritten[tat] {
					t.Fatalf("limit %d is not told", n)
				}
			}
		}
	})
}

// More renames than are remembered are missed, and take no more memory.
func TestExportDuringAFloodOfRenames(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	const keys = 30_000
	name := func(i int) string { return fmt.Sprintf("%01000d", i) }
	for i := range keys {
		memtest.MustPut(t, s, name(i), memtest.Live(t0, second), t0)
	}
	first := map[string]bool{}
	at, more := s.Export(s.StartExport(), t0, func(key []byte, _ store.Value) { first[string(key)] = true })
	var gone string // its place has been passed
	for gone = range first {
		break
	}
	for i := range keys {
		if !first[name(i)] {
			s.Rename([]byte(name(i)), []byte(gone), store.Access{NowNS: t0})
		}
	}
	last := 0
	for more {
		at, more = s.Export(at, t0, func([]byte, store.Value) { last++ })
	}
	s.EndExport(at)
	if last < 16<<20/(1000+64) || last > 16<<20/(1000+64)+1 {
		t.Errorf("%d are told, want those that 16 MB remember", last)
	}
}

// A copy made while the store grows, shrinks and changes has each key at most once, and those that were there all along.
func TestExportDuringChanges(t *testing.T) {
	for _, shards := range []int{1, 16} {
		s := memory.New(memory.Options{Shards: shards})
		for i := range 20_000 {
			memtest.MustPut(t, s, fmt.Sprint("stays ", i), memtest.Live(t0, second), t0)
		}
		memtest.MustPut(t, s, "count", memtest.Plain, t0)
		told, next := map[string]int{}, 0
		for at, more := (memory.Position{}), true; more; {
			at, more = s.Export(at, t0, func(key []byte, st store.Value) { told[string(key)]++ })
			for range 500 {
				memtest.MustPut(t, s, fmt.Sprint("comes ", next), memtest.Live(t0, second), t0)
				if next++; next%3 == 0 {
					s.Delete(fmt.Append(nil, "comes ", next-100), t0)
					memtest.MustPut(t, s, fmt.Sprint("comes ", next-100), memtest.Live(t0, second), t0)
				}
			}
		}
		for key, times := range told {
			if times != 1 {
				t.Fatalf("%q is told %d times", key, times)
			}
		}
		for i := range 20_000 {
			if told[fmt.Sprint("stays ", i)] != 1 {
				t.Fatalf("key %d is missing", i)
			}
		}
		if told["count"] != 1 {
			t.Error("a count is missing")
		}
	}
}
