//go:build all

package table_test

import (
	"bytes"
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/shard"
	"celld/store/memory/table"
)

// evicted is Stats.Evicted, for less.
func evicted(s *memory.Store) (n int64) {
	for i := range s.All {
		n += s.All[i].Counters.Evicted
	}
	return n
}

// kinds are keys of all kinds that there are memory for.
var kinds = []func(s *memory.Store, i int, nowNS int64) error{
	func(s *memory.Store, i int, nowNS int64) error {
		_, err := s.Throttle(fmt.Appendf(nil, "small %d", i), someLimit, 1, store.Access{NowNS: nowNS})
		return err
	},
	func(s *memory.Store, i int, nowNS int64) error {
		_, err := s.Take([]store.Call{{Key: fmt.Appendf(nil, "limits %d", i), Limit: &someLiteral}}, store.TakeOptions{Cost: 1},
			store.Access{NowNS: nowNS})
		return err
	},
	func(s *memory.Store, i int, nowNS int64) error {
		_, err := s.Throttle(fmt.Appendf(nil, "%0250d", i), someLimit, 1, store.Access{NowNS: nowNS})
		return err
	},
	func(s *memory.Store, i int, nowNS int64) error {
		_, err := s.Take([]store.Call{{Key: fmt.Appendf(nil, "log %d", i), Limit: &someLog}}, store.TakeOptions{Cost: 1},
			store.Access{NowNS: nowNS})
		return err
	},
	func(s *memory.Store, i int, nowNS int64) error {
		_, err := s.Throttle(append(fmt.Appendf(nil, "huge %d", i), longText...), someLimit, 1, store.Access{NowNS: nowNS})
		return err
	},
}

var (
	someLimit, _   = cell.NewBucket(10, 1, 1_000_000)
	someLiteral, _ = cell.ParseLimit("10/1d")
	longText       = bytes.Repeat([]byte("h"), 4000)
	someLog, _     = cell.ParseLimit("10/1d,algo=log")
)

// A table that was full of keys of one kind is full of another's without taking more memory, also where some of the first are
// Used all the time, so that none of their slabs is ever empty.
func TestMemoryGoesFromOneKindToAnother(t *testing.T) {
	const maxBytes = 24 << 20
	for _, pinned := range []bool{false, true} {
		t.Run(fmt.Sprintf("pinned=%v", pinned), func(t *testing.T) {
			t.Parallel()
			s := memory.New(memory.Options{MaxBytes: maxBytes})
			now := int64(1_800_000_000_000_000_000)
			for k, kind := range kinds {
				// Until all that was there before has gone, unless it is protected.
				end := evicted(s) + max(1000, int64(s.Len(now))*3/2)
				for i := 0; evicted(s) < end; i++ {
					now++
					if err := kind(s, i, now); err != nil {
						t.Fatal(err)
					}
					if pinned && i%50 == 0 {
						_ = kind(s, i, now) // so it is protected
					}
				}
				if got := memtest.Footprint(&s.Shards); got > maxBytes+maxBytes/4+8<<20 {
					t.Errorf("after kind %d of keys %d MB are taken", k, got>>20)
				}
				if held := s.Room.Bytes.Load(); !pinned && held < maxBytes*3/4 {
					t.Errorf("after kind %d of keys %d MB are held", k, held>>20)
				}
			}
			if err := memtest.Audit(&s.Shards); err != nil {
				t.Error(err)
			}
		})
	}
}

// Slots that the journal knows stay where they are until it is drained; then their slabs go.
func TestSlabsGoWhenTheirChangesAreTold(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	const keys, now = 100 * table.SlabSize, 1_800_000_000_000_000_000
	for i := range keys {
		if err := kinds[0](s, i, now); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keys {
		s.Delete(fmt.Appendf(nil, "small %d", i), now)
	}
	if there := s.All[0].Slabs.FreePlaces.There; there != 101 {
		t.Errorf("%d slabs are there, whose changes are not told", there)
	}
	for s.Drain(func(c shard.Change) {
		if !c.Deleted && !c.Lost {
			t.Errorf("%q is told", c.Key)
		}
	}) {
	}
	if there := s.All[0].Slabs.FreePlaces.There; there > 2 {
		t.Errorf("%d slabs are there, of no keys", there)
	}
	if err := memtest.Audit(&s.Shards); err != nil {
		t.Error(err)
	}
}
