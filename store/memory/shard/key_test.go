package shard_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"

	"pgregory.net/rapid"
)

// Keys of every length, of which many differ only in a byte anywhere, come and go; a map is the model.
func TestKeysOfAllLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := memory.New(memory.Options{Shards: rapid.SampledFrom([]int{1, 4}).Draw(t, "shards")}), map[string]store.Value{}
		drawKey := func() string {
			lengths := []int{0, 1, 7, 8, 9, 12, 15, 16, 17, 28, 39, 40, 41, 68, 69, 253, 254, 255, 256, 3000}
			length := rapid.SampledFrom(lengths).Draw(t, "length")
			key := []byte(strings.Repeat("a", length))
			if length > 0 && rapid.Bool().Draw(t, "differs") {
				key[rapid.IntRange(0, length-1).Draw(t, "at")] = rapid.SampledFrom([]byte{0, 'b', 0xff}).Draw(t, "byte")
			}
			return string(key)
		}
		for i := range rapid.Int64Range(1, 200).Draw(t, "steps") {
			key := drawKey()
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				memtest.MustPut(t, s, key, memtest.Live(t0, i+1), t0)
				model[key] = memtest.Live(t0, i+1)
			case 2:
				_, there := model[key]
				if got := s.Delete([]byte(key), t0); got != there {
					t.Fatalf("delete of %d bytes: %v", len(key), got)
				}
				delete(model, key)
			default:
				to := drawKey()
				if memtest.Did(s.Rename([]byte(key), []byte(to), memtest.At(t0))) && key != to {
					model[to] = model[key]
					delete(model, key)
				}
			}
			st, there := s.Get([]byte(key), memtest.At(t0))
			if want, ok := model[key]; ok != there || st != want {
				t.Fatalf("key of %d bytes has %+v, %v; want %+v, %v", len(key), st, there, want, ok)
			}
		}
		memtest.ExpectKeys(t, s, t0, slices.Sorted(maps.Keys(model))...)
		var bytes int64
		for key := range model {
			bytes += table.CostBytes(len(key))
		}
		if st := s.Stats(t0); st.Bytes != bytes {
			t.Fatalf("%d bytes, want %d", st.Bytes, bytes)
		}
	})
}

func TestAKeyOfAMegabyte(t *testing.T) {
	s := memory.New(memory.Options{})
	key := strings.Repeat("x", 1<<20)
	memtest.MustPut(t, s, key, memtest.Plain, t0)
	memtest.ExpectKeys(t, s, t0, key)
	s.Rename([]byte(key), []byte(key+"y"), memtest.At(t0))
	memtest.ExpectKeys(t, s, t0, key+"y")
}
