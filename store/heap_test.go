package store_test

import (
	"runtime"
	"testing"

	"celld/store"
)

// heapBytesPerKey fills a store with n keys of 16 bytes and returns what each takes on the heap.
func heapBytesPerKey(tb testing.TB, n int) float64 {
	limit := mustLimit(tb, 5, 1, 3600)
	before := heapBytes()
	s := store.New(store.Options{MaxKeys: int64(n)})
	key := []byte("0123456789abcdef")
	for i := range n {
		for digit, rest := 15, i; digit >= 0; digit, rest = digit-1, rest/10 {
			key[digit] = byte('0' + rest%10)
		}
		mustAllow(tb, s, key, limit, t0)
	}
	used := heapBytes() - before
	if held := s.Len(t0); held != n {
		tb.Fatalf("%d keys held, %d wanted", held, n)
	}
	return float64(used) / float64(n)
}

// A store that takes much more than its estimate is one that MaxBytes does not bound.
func TestOverheadBytesIsWhatAKeyTakes(t *testing.T) {
	const n = 100_000
	got, want := heapBytesPerKey(t, n), float64(16+store.OverheadBytes)
	if got < want*0.75 || got > want*1.25 {
		t.Errorf("%.0f bytes a key measured, %.0f estimated", got, want)
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
