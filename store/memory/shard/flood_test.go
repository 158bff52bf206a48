package shard_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"celld/internal/celldtest"
	"celld/store/memory"
	"celld/store/memory/memtest"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const limitedKeys = 1000

// flood asks twice for each of 1,000 keys, and then sends ten times as many others as the table holds, once each. While
// three tables of them pass, each of the 1,000 is asked for once more.
func flood(table int, seen, asked func(key []byte)) {
	key, other := []byte("flood...........")[:16], []byte("limited.........")[:16]
	ask := func(i int) {
		binary.LittleEndian.PutUint64(other[8:], uint64(i%limitedKeys))
		asked(other)
	}
	for i := range 2 * limitedKeys {
		ask(i)
	}
	every := 3 * table / limitedKeys
	for i := range 10 * table {
		binary.LittleEndian.PutUint64(key[8:], uint64(i))
		seen(key)
		if i%every == 0 {
			ask(i / every)
		}
	}
}

// expectNoneFreed runs a flood on a store: of the calls for each limited key only the first may pass.
func expectNoneFreed(t *testing.T, table, shards int) {
	limit := memtest.MustLimit(t, 0, 1, 3600)
	s := memory.New(memory.Options{MaxKeys: int64(table), Shards: shards})
	now, passed := t0, 0
	flood(table, func(key []byte) {
		now++
		memtest.MustAllow(t, s, key, limit, now)
	}, func(key []byte) {
		d, err := s.Throttle(key, limit, 1, memtest.At(now))
		if err != nil {
			t.Fatal(err)
		}
		if !d.Limited {
			passed++
		}
	})
	st := s.Stats(now)
	if passed != limitedKeys || st.Protected != limitedKeys || st.Evicted != int64(9*table+limitedKeys) || s.Len(now) != table {
		t.Errorf("%d shards: %d calls passed, %d should; %+v", shards, passed, limitedKeys, st)
	}
}

func TestAFloodFreesNoLimitedKey(t *testing.T) {
	for _, shards := range []int{1, 16} {
		expectNoneFreed(t, 10_000, shards)
	}
}

// A flood of ten million takes 10 s of CPU time, so `make test` does with a tenth.
func TestAFloodOfTenMillionKeysFreesNoLimitedKey(t *testing.T) {
	keys := 100_000
	if celldtest.Thorough {
		keys = 1_000_000
	}
	expectNoneFreed(t, keys, 16)
}

// Plain LRU is what the segments are there to better: it forgets each of the keys before it is asked for again.
func TestAFloodThroughAPlainLRUFreesThem(t *testing.T) {
	lru, err := simplelru.NewLRU[string, struct{}](10_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked, found := 0, 0
	flood(10_000, func(key []byte) { lru.Add(string(key), struct{}{}) }, func(key []byte) {
		asked++
		if _, ok := lru.Get(string(key)); ok {
			found++
		}
		lru.Add(string(key), struct{}{})
	})
	if found > asked/3 { // those of the start
		t.Errorf("of %d calls for limited keys %d found theirs", asked, found)
	}
}

// In a store that does not note each use, a key that is asked again and again outlives any flood of keys that are asked once, and
// of keys that are asked twice one of less than a fifth of the store in 0.1 s. Its idle time is right to a second or so.
func TestKeysInUseOutliveFloods(t *testing.T) {
	const maxKeys, idleMost = 10_000, 11 * second / 10
	limits := []string{"1000000/8784h", "1000000/8784h,algo=window"}
	for _, tt := range []struct {
		name          string
		flood, asked  int
		everyNS, uses int64
	}{
		{"of keys asked once", 3 * maxKeys, 1, second / 2, 20},
		{"of keys asked twice", maxKeys / 6, 2, second / 10, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: maxKeys})
			bucket := memtest.MustLimit(t, 999_999, 1, 3600)
			flooded := 0
			for use := range tt.uses {
				nowNS := t0 + max(use-1, 0)*tt.everyNS // the first two are at once
				d, err := s.Throttle([]byte("throttled"), bucket, 1, memtest.At(nowNS))
				if err != nil || d.Remaining != 999_999-use {
					t.Fatalf("use %d: %+v, %v", use, d, err)
				}
				for _, limit := range limits {
					taken := memtest.Calls(t, limit, limit)
					if memtest.MustTake(t, s, 1, nowNS, taken); taken[0].Decision.Remaining != 999_999-use {
						t.Fatalf("use %d of %s: %+v", use, limit, taken[0].Decision)
					}
				}
				if use == 0 {
					continue
				}
				for range tt.flood {
					flooded++
					for range tt.asked {
						memtest.MustAllow(t, s, fmt.Append(nil, flooded), bucket, nowNS)
					}
				}
				for _, key := range append(limits, "throttled") {
					if idle, ok := s.IdleNS([]byte(key), nowNS); !ok || idle > idleMost {
						t.Fatalf("use %d: %s has been idle for %d ns, is there: %v", use, key, idle, ok)
					}
				}
			}
		})
	}
}
