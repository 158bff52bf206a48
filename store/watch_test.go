package store_test

import (
	"fmt"
	"testing"

	"celld/store"
)

func TestWatch(t *testing.T) {
	limit := mustLimit(t, 1, 1, 3600)
	k := []byte("k")
	throttle := func(quantity int64) func(*store.Store) {
		return func(s *store.Store) { _, _ = s.Throttle(k, limit, quantity, at(t0)) }
	}
	put := func(s *store.Store) { _ = put(s, "k", live(t0, second), t0) }
	putOver := func(s *store.Store) {
		_ = s.Update(k, at(t0), func(store.State, bool) (store.State, store.Action) { return store.State{}, store.Put })
	}
	remove := func(s *store.Store) { s.Delete(k, t0) }
	other := func(s *store.Store) {
		_ = s.Update([]byte("o"), at(t0), func(store.State, bool) (store.State, store.Action) { return plain, store.Put })
	}
	evict := func(s *store.Store) {
		for i := range 100 {
			_, _ = s.Throttle(fmt.Append(nil, i), limit, 1, at(t0))
		}
	}
	tests := []struct {
		name    string
		there   bool // at Watch, with a TTL of 1 s
		events  []func(*store.Store)
		afterNS int64
		changed bool
	}{
		{"nothing, there", true, nil, 0, false},
		{"nothing, absent", false, nil, 0, false},
		{"put the same", true, []func(*store.Store){put}, 0, true},
		{"created", false, []func(*store.Store){put}, 0, true},
		{"created by a call", false, []func(*store.Store){throttle(1)}, 0, true},
		{"moved by a call", true, []func(*store.Store){throttle(1)}, 0, true},
		{"a limited call", true, []func(*store.Store){throttle(5)}, 0, false},
		{"a limited call on an absent key", false, []func(*store.Store){throttle(5)}, 0, false},
		{"a peek", true, []func(*store.Store){throttle(0)}, 0, false},
		{"a refund to full", true, []func(*store.Store){throttle(-1)}, 0, true},
		{"a refund of an absent key", false, []func(*store.Store){throttle(-1)}, 0, false},
		{"reads", true, []func(*store.Store){func(s *store.Store) { s.Get(k, at(t0)); s.IdleNS(k, t0); s.Len(t0) }}, 0, false},
		{"deleted", true, []func(*store.Store){remove}, 0, true},
		{"deleted, was absent", false, []func(*store.Store){remove}, 0, false},
		{"deleted and put again", true, []func(*store.Store){remove, put}, 0, true},
		{"created and deleted", false, []func(*store.Store){put, remove}, 0, true},
		{"created, and expired", false, []func(*store.Store){put}, second, true},
		{"put as over", true, []func(*store.Store){putOver}, 0, true},
		{"put as over, was absent", false, []func(*store.Store){putOver}, 0, false},
		{"expired", true, nil, second, true},
		{"expired and swept", true, []func(*store.Store){func(s *store.Store) { s.Sweep(t0+second, 10) }}, second, true},
		{"about to expire", true, nil, second - 1, false},
		{"flushed", true, []func(*store.Store){(*store.Store).Flush}, 0, true},
		{"flushed, was absent", false, []func(*store.Store){(*store.Store).Flush}, 0, false},
		{"flushed and put again", true, []func(*store.Store){(*store.Store).Flush, put}, 0, true},
		{"renamed away", true, []func(*store.Store){func(s *store.Store) { s.Rename(k, []byte("to"), t0) }}, 0, true},
		{"renamed away and back", true, []func(*store.Store){
			func(s *store.Store) { s.Rename(k, []byte("to"), t0) },
			func(s *store.Store) { s.Rename([]byte("to"), k, t0) },
		}, 0, true},
		{"renamed to itself", true, []func(*store.Store){func(s *store.Store) { s.Rename(k, k, t0) }}, 0, false},
		{"another renamed over it", true, []func(*store.Store){other, func(s *store.Store) { s.Rename([]byte("o"), k, t0) }}, 0, true},
		{"evicted", true, []func(*store.Store){evict}, 0, true},
		{"others evicted", false, []func(*store.Store){evict}, 0, false},
		{"shrunk away", true, []func(*store.Store){func(s *store.Store) { s.SetMaxBytes(1) }}, 0, true},
	}
	for _, shards := range []int{1, 4} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, shards=%d", tt.name, shards), func(t *testing.T) {
				s := store.New(store.Options{MaxKeys: 4, Shards: shards})
				if tt.there {
					mustPut(t, s, "k", live(t0, second), t0)
				}
				w, twin := s.Watch(k, t0), s.Watch(k, t0)
				for _, event := range tt.events {
					event(s)
				}
				if got := w.Changed(t0 + tt.afterNS); got != tt.changed {
					t.Fatalf("changed: %v, want %v", got, tt.changed)
				}
				w.Stop()
				w.Stop()
				if w.Changed(t0 + tt.afterNS) {
					t.Error("changed, though stopped")
				}
				if got := twin.Changed(t0 + tt.afterNS); got != tt.changed {
					t.Errorf("the other watch after a Stop: %v, want %v", got, tt.changed)
				}
				if again := s.Watch(k, t0+tt.afterNS); again.Changed(t0 + tt.afterNS) {
					t.Error("a new watch has changed before anything happened")
				}
				twin.Stop()
			})
		}
	}
}

// A dead key that nobody has removed is absent at Watch, and to remove it is no change.
func TestWatchOfADeadKey(t *testing.T) {
	s := store.New(store.Options{})
	mustPut(t, s, "k", live(t0, 1), t0)
	w := s.Watch([]byte("k"), t0+1)
	s.Sweep(t0+1, 10)
	if w.Changed(t0 + 1) {
		t.Error("changed")
	}
}

func TestStoppedWatchesTakeNothing(t *testing.T) {
	s := store.New(store.Options{})
	before := heapBytes()
	for i := range 100_000 {
		s.Watch(fmt.Appendf(nil, "a key that nobody watches any more %d", i), t0).Stop()
	}
	if grown := heapBytes() - before; grown > 1<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	s.Flush()
}
