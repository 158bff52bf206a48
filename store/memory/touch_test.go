package memory

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
	if s.large() {
		t.Error("a small table is touched")
	}
	put(touchFromKeys - 1)
	if !s.large() {
		t.Error("a large table is not touched")
	}
	var b batch
	keys := []int{5, -1, 7, touchFromKeys - 1}
	for _, key := range keys {
		b.add(s.Hash(fmt.Append(nil, key)))
	}
	s.touch(&b)
	for i, e := range b.slots[:b.n] {
		key := fmt.Append(nil, keys[i])
		if there := e != nil && s.shardOf(b.hashes[i]).Keys.Is(e, key); there != (keys[i] >= 0) {
			t.Errorf("%s: found %v", key, there)
		}
	}
}

// A flush comes after a batch has looked ahead and before it decides.
func TestFlushAfterTouch(t *testing.T) {
	limit, err := cell.ParseLimit("2/1m")
	if err != nil {
		t.Fatal(err)
	}
	s, a := New(Options{Shards: 1}), store.Access{NowNS: 1}
	take := func(key string, b *batch) int64 {
		reqs := []store.TakeRequest{{Calls: []store.Call{{Key: []byte(key), Limit: &limit}}, TakeOptions: store.TakeOptions{Cost: 1}}}
		reqs[0].Hash = s.Hash([]byte(key))
		s.takeAll(reqs, b, a, nil)
		return reqs[0].Calls[0].Decision.Remaining
	}
	take("k", nil)
	var b batch
	b.add(s.Hash([]byte("k")))
	s.touch(&b)
	s.Flush()
	take("other", nil)
	if got := take("k", &b); got != 1 {
		t.Errorf("%d left of a new key, want 1", got)
	}
	if got := take("other", nil); got != 0 {
		t.Errorf("%d left of another key, want 0", got)
	}
}
