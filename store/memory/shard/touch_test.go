package shard

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
)

// Batches look ahead for the slots of a large table.
func TestTouch(t *testing.T) {
	s := New(Options{})
	limit, err := cell.NewBucket(4, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	put := func(i int) {
		if _, err := s.Throttle(fmt.Append(nil, i), limit, 1, store.Access{NowNS: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range touchFromKeys - 1 {
		put(i)
	}
	if s.Large() {
		t.Error("a small table is touched")
	}
	put(touchFromKeys - 1)
	if !s.Large() {
		t.Error("a large table is not touched")
	}
	var b Prefetch
	keys := []int{5, -1, 7, touchFromKeys - 1}
	for _, key := range keys {
		b.Add(s.Hash(fmt.Append(nil, key)))
	}
	s.Touch(&b)
	for i, e := range b.slots[:b.n] {
		key := fmt.Append(nil, keys[i])
		if there := e != nil && s.ShardOf(b.hashes[i]).Keys.Is(e, key); there != (keys[i] >= 0) {
			t.Errorf("%s: found %v", key, there)
		}
	}
}
