//go:build !race

package memory_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
)

// heapBytesPerKey fills a store with n keys of a length and returns what each takes on the heap.
func heapBytesPerKey(tb testing.TB, n, keyLen int) float64 {
	limit := memtest.MustLimit(tb, 5, 1, 3600)
	before := memtest.HeapBytes()
	s := memory.New(memory.Options{MaxKeys: int64(n)})
	key := bytes.Repeat([]byte("k"), keyLen)
	for i := range n {
		binary.LittleEndian.PutUint64(key, uint64(i))
		memtest.MustAllow(tb, s, key, limit, t0)
	}
	used := memtest.HeapBytes() - before
	if held := s.Len(t0); held != n {
		tb.Fatalf("%d keys held, %d wanted", held, n)
	}
	return float64(used) / float64(n)
}

// A store that takes much more than its estimate is one that MaxBytes does not bound.
func TestOverheadBytesIsWhatAKeyTakes(t *testing.T) {
	const n = 100_000
	for _, keyLen := range []int{16, 40, 100} {
		got, want := heapBytesPerKey(t, n, keyLen), float64(keyLen+table.OverheadBytes)
		if got < want*0.75 || got > want*1.3 { // keys of 100 take 189 to 195 for 156, as their last bytes are in blocks of their own
			t.Errorf("%.0f bytes a key of %d measured, %.0f estimated", got, keyLen, want)
		}
	}
}

// What a store takes before it holds much.
func TestASmallStoreIsSmall(t *testing.T) {
	before := memtest.HeapBytes()
	s := memory.New(memory.Options{})
	for _, key := range []string{"a", "b", "c"} {
		memtest.MustPut(t, s, key, memtest.Plain, t0)
	}
	if used := memtest.HeapBytes() - before; used > 200_000 {
		t.Errorf("3 keys take %d bytes", used)
	}
	memtest.ExpectKeys(t, s, t0, "a", "b", "c")
}
