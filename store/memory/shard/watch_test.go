package shard_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

func TestWatch(t *testing.T) {
	limit := memtest.MustLimit(t, 1, 1, 3600)
	k := []byte("k")
	throttle := func(quantity int64) func(*memory.Store) {
		return func(s *memory.Store) { _, _ = s.Throttle(k, limit, quantity, memtest.At(t0)) }
	}
	update := func(key string, st store.Value) func(*memory.Store) {
		return func(s *memory.Store) { _ = memtest.Put(s, key, st, t0) }
	}
	create, putOver, other := update("k", memtest.Live(t0, second)), update("k", memtest.Live(t0, 0)), update("o", memtest.Plain)
	remove := func(s *memory.Store) { s.Delete(k, t0) }
	rename := func(from, to string) func(*memory.Store) {
		return func(s *memory.Store) { s.Rename([]byte(from), []byte(to), memtest.At(t0)) }
	}
	renameNew := func(from, to string) func(*memory.Store) {
		return func(s *memory.Store) { s.RenameNew([]byte(from), []byte(to), memtest.At(t0)) }
	}
	copyTo := func(from, to string, replace bool) func(*memory.Store) {
		return func(s *memory.Store) { _, _ = s.Copy([]byte(from), []byte(to), replace, memtest.At(t0)) }
	}
	reads := func(s *memory.Store) {
		s.Get(k, memtest.At(t0))
		s.IdleNS(k, t0)
		s.Len(t0)
		memtest.Contents(t, s, t0)
	}
	sweep := func(s *memory.Store) { s.Sweep(t0 + second) }
	shrink := func(s *memory.Store) { memtest.SetMaxBytes(&s.Capacity, 1) }
	flush := (*memory.Store).Flush
	type events = []func(*memory.Store)
	evict := func(s *memory.Store) {
		for i := range 100 {
			_, _ = s.Throttle(fmt.Append(nil, i), limit, 1, memtest.At(t0))
		}
	}
	tests := []struct {
		name    string
		there   bool // at Watch, with a TTL of 1 s
		events  events
		afterNS int64
		changed bool
	}{
		{"nothing, there", true, nil, 0, false},
		{"nothing, absent", false, nil, 0, false},
		{"put the same", true, events{create}, 0, true},
		{"created", false, events{create}, 0, true},
		{"created by a call", false, events{throttle(1)}, 0, true},
		{"moved by a call", true, events{throttle(1)}, 0, true},
		{"a limited call", true, events{throttle(5)}, 0, false},
		{"a limited call on an absent key", false, events{throttle(5)}, 0, false},
		{"a peek", true, events{throttle(0)}, 0, false},
		{"a refund to full", true, events{throttle(-1)}, 0, true},
		{"a refund of an absent key", false, events{throttle(-1)}, 0, false},
		{"reads", true, events{reads}, 0, false},
		{"deleted", true, events{remove}, 0, true},
		{"deleted, was absent", false, events{remove}, 0, false},
		{"deleted and put again", true, events{remove, create}, 0, true},
		{"created and deleted", false, events{create, remove}, 0, true},
		{"created, and expired", false, events{create}, second, true},
		{"put as over", true, events{putOver}, 0, true},
		{"put as over, was absent", false, events{putOver}, 0, false},
		{"expired", true, nil, second, true},
		{"expired and swept", true, events{sweep}, second, true},
		{"about to expire", true, nil, second - 1, false},
		{"flushed", true, events{flush}, 0, true},
		{"flushed, was absent", false, events{flush}, 0, false},
		{"flushed and put again", true, events{flush, create}, 0, true},
		{"renamed away", true, events{rename("k", "to")}, 0, true},
		{"renamed away and back", true, events{rename("k", "to"), rename("to", "k")}, 0, true},
		{"renamed to itself", true, events{rename("k", "k")}, 0, false},
		{"another renamed over it", true, events{other, rename("o", "k")}, 0, true},
		{"renamed away to a new name", true, events{renameNew("k", "to")}, 0, true},
		{"not renamed to a name that is taken", true, events{other, renameNew("k", "o")}, 0, false},
		{"another renamed to it, absent", false, events{other, renameNew("o", "k")}, 0, true},
		{"another not renamed over it", true, events{other, renameNew("o", "k")}, 0, false},
		{"copied", true, events{copyTo("k", "to", false)}, 0, false},
		{"another copied to it, absent", false, events{other, copyTo("o", "k", false)}, 0, true},
		{"another not copied over it", true, events{other, copyTo("o", "k", false)}, 0, false},
		{"another copied over it", true, events{other, copyTo("o", "k", true)}, 0, true},
		{"an absent one copied over it", true, events{copyTo("o", "k", true)}, 0, false},
		{"evicted", true, events{evict}, 0, true},
		{"others evicted", false, events{evict}, 0, false},
		{"shrunk away", true, events{shrink}, 0, true},
	}
	for _, shards := range []int{1, 4} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, shards=%d", tt.name, shards), func(t *testing.T) {
				s := memory.New(memory.Options{MaxKeys: 4, Shards: shards})
				if tt.there {
					memtest.MustPut(t, s, "k", memtest.Live(t0, second), t0)
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
	s := memory.New(memory.Options{})
	memtest.MustPut(t, s, "k", memtest.Live(t0, 1), t0)
	w := s.Watch([]byte("k"), t0+1)
	s.Sweep(t0 + 1)
	if w.Changed(t0 + 1) {
		t.Error("changed")
	}
}

func TestStoppedWatchesTakeNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	before := memtest.HeapBytes()
	for i := range 100_000 {
		s.Watch(fmt.Appendf(nil, "a key that nobody watches any more %d", i), t0).Stop()
	}
	if grown := memtest.HeapBytes() - before; grown > 1<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	s.Flush()
}

// A call that takes no lock changes a watched key, too; one that is denied does not.
func TestWatchSeesCallsWithoutTheLock(t *testing.T) {
	s := memory.New(memory.Options{})
	k, limit := []byte("k"), memtest.MustLimit(t, 3, 1, 3600)
	memtest.MustAllow(t, s, k, limit, t0)
	memtest.MustAllow(t, s, k, limit, t0) // from now on nothing but the change is to be noted under the lock
	w := s.Watch(k, t0)
	defer w.Stop()
	if d, err := s.Throttle(k, limit, 9, memtest.At(t0)); err != nil || !d.Limited || w.Changed(t0) {
		t.Fatalf("%+v, %v: changed %v", d, err, w.Changed(t0))
	}
	if memtest.MustAllow(t, s, k, limit, t0); !w.Changed(t0) {
		t.Error("a call that passed is not seen")
	}
}
