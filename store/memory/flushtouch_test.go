package memory

import (
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
)

// A flush comes after a batch has looked ahead and before it decides.
func TestFlushAfterTouch(t *testing.T) {
	limit, err := cell.ParseLimit("2/1m")
	if err != nil {
		t.Fatal(err)
	}
	s, a := New(Options{Shards: 1}), store.Access{NowNS: 1}
	take := func(key string, b *shard.Prefetch) int64 {
		reqs := []store.TakeRequest{{Calls: []store.Call{{Key: []byte(key), Limit: &limit}}, TakeOptions: store.TakeOptions{Cost: 1}}}
		reqs[0].Hash = s.Hash([]byte(key))
		s.takeAll(reqs, b, a, nil)
		return reqs[0].Calls[0].Decision.Remaining
	}
	take("k", nil)
	var b shard.Prefetch
	b.Add(s.Hash([]byte("k")))
	s.Touch(&b)
	s.Flush()
	take("other", nil)
	if got := take("k", &b); got != 1 {
		t.Errorf("%d left of a new key, want 1", got)
	}
	if got := take("other", nil); got != 0 {
		t.Errorf("%d left of another key, want 0", got)
	}
}
