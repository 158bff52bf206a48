//go:build !race

package memory_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// heapPerKey fills a store with n keys of a length and returns what each takes on the heap, and what it counts as.
func heapPerKey(tb testing.TB, n, keyLen int, put func(s *memory.Store, key []byte)) (takes, counts float64) {
	before := memtest.HeapBytes()
	s := memory.New(memory.Options{MaxKeys: int64(n), Shards: 1})
	key := bytes.Repeat([]byte("k"), keyLen)
	for i := range n {
		binary.LittleEndian.PutUint64(key, uint64(i))
		put(s, key)
	}
	used := memtest.HeapBytes() - before
	if held := s.Len(t0); held != n {
		tb.Fatalf("%d keys held, %d wanted", held, n)
	}
	return float64(used) / float64(n), float64(s.Stats(t0).Bytes) / float64(n)
}

func throttled(tb testing.TB) func(s *memory.Store, key []byte) {
	limit := memtest.MustLimit(tb, 5, 1, 3600)
	return func(s *memory.Store, key []byte) { memtest.MustAllow(tb, s, key, limit, t0) }
}

// Keys of all kinds count as what they take, give or take a tenth. A page says both.
func TestWhatKeysTake(t *testing.T) {
	calls := func(n int64, texts ...string) func(s *memory.Store, key []byte) {
		list := make([]store.Call, len(texts))
		for i, text := range texts {
			list[i] = memtest.Call(t, "", text)
		}
		return func(s *memory.Store, key []byte) {
			for i := range list {
				list[i].Key = key
			}
			for i := range n {
				memtest.MustTake(t, s, 1, t0+i, list)
			}
		}
	}
	limit := memtest.Call(t, "", "99/1h")
	kinds := []struct {
		name   string
		keyLen int
		put    func(s *memory.Store, key []byte)
	}{
		{"CL.THROTTLE, INCR", 16, throttled(t)},
		{"with an expiry of its own", 16, func(s *memory.Store, key []byte) {
			memtest.MustPut(t, s, string(key), store.Value{Count: 5, ExpiryNS: t0 + hour}, t0)
		}},
		{"a key of 40 bytes", 40, throttled(t)},
		{"a key of 100 bytes", 100, throttled(t)},
		{"a key of 300 bytes", 300, throttled(t)},
		{"CL.TAKE, one limit", 16, calls(1, "99/1h")},
		{"four limits", 16, calls(1, "99/1h", "99/2h", "99/1h,algo=window", "99/day")},
		{"`algo=slide,buckets=60`", 16, calls(1, "99/1h,algo=slide,buckets=60")},
		{"`algo=log`, one call", 16, calls(1, "99/1h,algo=log")},
		{"50 calls", 16, calls(50, "99/1h,algo=log")},
		{"`algo=conc`, one lease", 16, calls(1, "99/1h,algo=conc")},
		{"50 leases", 16, calls(50, "99/1h,algo=conc")},
		{"LEASE", 16, func(s *memory.Store, key []byte) {
			limit.Key = key
			o := store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: hour}}
			if _, err := s.Take([]store.Call{limit}, o, memtest.At(t0)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	page, err := os.ReadFile("../../docs/reference/bounds.md")
	if err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return a > b*0.9 && a < b*1.1 }
	for _, k := range kinds {
		takes, counts := heapPerKey(t, 20_000, k.keyLen, k.put)
		var saidCounts, saidTakes float64
		_, row, _ := strings.Cut(string(page), "\n| "+k.name+" | ")
		_, _ = fmt.Sscanf(row, "%f | %f |", &saidCounts, &saidTakes)
		if !near(takes, counts) || counts != saidCounts || !near(takes, saidTakes) {
			t.Errorf("| %s | %.0f | %.0f |, and the page says %.0f and %.0f", k.name, counts, takes, saidCounts, saidTakes)
		}
	}
}

// While keys of one kind take the room of others, hardly any memory lies between them that neither takes.
func TestChurnOfShapesLeavesNoGaps(t *testing.T) {
	const most = 24 << 20
	s, now := memory.New(memory.Options{MaxKeys: 1 << 20, MaxBytes: most, Shards: 16}), t0
	for range 2 {
		for _, texts := range [][]string{
			{"5/1h", "5/2h", "5/3h", "5/4h"}, {"5/1h,algo=slide,buckets=128"}, {"5/1s,algo=conc"}, {"5/1h"}, {"5/1h,algo=log"},
		} {
			list := make([]store.Call, len(texts))
			for i, text := range texts {
				list[i] = memtest.Call(t, "", text)
			}
			for part := range 4 {
				for range 9000 * len(texts) {
					now += second / 9000
					for i := range list {
						list[i].Key = binary.LittleEndian.AppendUint64(nil, uint64(now))
					}
					memtest.MustTake(t, s, 1, now, list)
				}
				memtest.HeapBytes() // collects
				var m runtime.MemStats
				if runtime.ReadMemStats(&m); m.HeapInuse-m.HeapAlloc > most/5 {
					t.Errorf("after part %d of %q, %d KB are idle between objects", part, texts, (m.HeapInuse-m.HeapAlloc)>>10)
				}
			}
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
