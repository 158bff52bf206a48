//go:build !race

package resp

import (
	"encoding/binary"
	"runtime"
	"testing"

	"celld/internal/celldtest"
	"celld/store/memory/memtest"
)

// Where more than allowed lies between objects, keys may take less, but never less than an eighth. New settings change that, and keys above
// it go.
func TestGapsCountAgainstMaxmemory(t *testing.T) {
	const mb = 1 << 20
	w := newWorld(t, "maxmemory", "64mb")
	expect := func(want int64) {
		t.Helper()
		if got := w.sessions.Store.MaxBytes(); got != want {
			t.Errorf("keys may take %d KB, want %d", got>>10, want>>10)
		}
	}
	for gaps, want := range map[int64]int64{0: 64 * mb, 24 * mb: 64 * mb, 34 * mb: 54 * mb, 80 * mb: 8 * mb, 1 << 40: 8 * mb} {
		w.followGaps(gaps)
		expect(want)
	}
	w.followGaps(44 * mb)
	expect(44 * mb)
	w.connect().want("CONFIG SET maxmemory 32mb", "+OK\r\n")
	w.followGaps(44 * mb)
	expect(8 * mb)
	w.connect().want("CONFIG SET maxmemory 0", "+OK\r\n")
	w.followGaps(44 * mb)
	expect(0)
	w.connect().want("CONFIG SET maxmemory 8mb", "+OK\r\n")
	w.followGaps(0)
	expect(8 * mb)
	for i := range 100_000 {
		memtest.MustAllow(t, w.sessions.Store, binary.BigEndian.AppendUint64(nil, uint64(i)), memtest.MustLimit(t, 5, 1, 3600), w.nowNS)
	}
	if w.followGaps(19 * mb); w.sessions.Store.Stats(w.nowNS).Bytes > 6*mb {
		t.Error("keys take more than they may")
	}
}

// Memory that keys have left goes back to the system, and not only when the collector runs by itself.
func TestMemoryOfKeysGoesBack(t *testing.T) {
	w := newWorld(t)
	var last counted
	var before, after runtime.MemStats
	w.tick(nil, 50, &last)
	for i := range 900_000 {
		memtest.MustAllow(t, w.sessions.Store, binary.BigEndian.AppendUint64(nil, uint64(i)), memtest.MustLimit(t, 5, 1, 10), w.nowNS)
	}
	_, full, _ := w.sessions.Heap.Read()
	runtime.ReadMemStats(&before)
	w.sleepMS(100_000)
	memtest.Sweep(w.sessions.Store, w.nowNS)
	w.tick(nil, 50, &last)
	celldtest.Eventually(t, "the memory goes back", func() bool {
		_, held, _ := w.sessions.Heap.Read()
		return held < full-40<<20
	})
	if runtime.ReadMemStats(&after); after.NumForcedGC == before.NumForcedGC {
		t.Error("the collector has run by itself, after 2 minutes")
	}
}
