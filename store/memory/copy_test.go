package memory_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
)

// under are calls for some limits of one key.
func under(t *testing.T, key string, texts ...string) (list []store.Call) {
	for _, text := range texts {
		list = append(list, memtest.Call(t, key, text))
	}
	return list
}

// A copy goes its own way: what is taken from one is not taken from the other, whatever the limit keeps.
func TestCopiesAreApart(t *testing.T) {
	for _, shards := range []int{1, 16} {
		s := memory.New(memory.Options{Shards: shards})
		texts := []string{"5/1h", "5/1h,algo=window", "5/1h,algo=slide", "5/1h,algo=slide,buckets=3", "5/2h,algo=log"}
		memtest.MustTake(t, s, 2, t0, under(t, "k", texts...))
		if copied, err := s.Copy([]byte("k"), []byte("copy"), false, memtest.At(t0)); !copied || err != nil {
			t.Fatal(copied, err)
		}
		memtest.MustTake(t, s, 3, t0, under(t, "copy", texts...))
		for _, text := range texts {
			if got := memtest.MustTake(t, s, 3, t0, memtest.Calls(t, "k", text)); got.Limited {
				t.Errorf("%s: what was taken from the copy was taken from the key", text)
			}
			if got := memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "copy", text)); !got.Limited {
				t.Errorf("%s: what was taken before is not in the copy", text)
			}
		}
		memtest.MustAudit(t, s)
	}
}

// A full store that does not evict refuses a new key, and nothing has changed; one over another that takes as much needs no room.
func TestCopyInAFullStore(t *testing.T) {
	for _, shards := range []int{1, 16} {
		s := memory.New(memory.Options{MaxKeys: 3, NoEviction: true, Shards: shards})
		memtest.MustTake(t, s, 2, t0, under(t, "k", "5/1h,algo=log", "5/1h"))
		memtest.MustPut(t, s, "a", memtest.Live(t0, second), t0)
		memtest.MustPut(t, s, "b", memtest.Live(t0, 2*second), t0)
		bytes := s.Stats(t0).Bytes
		if copied, err := s.Copy([]byte("k"), []byte("new"), true, memtest.At(t0)); copied || !errors.Is(err, store.ErrFull) {
			t.Errorf("to a new key: %v, %v", copied, err)
		}
		if copied, err := s.Copy([]byte("b"), []byte("a"), true, memtest.At(t0)); !copied || err != nil {
			t.Errorf("over another: %v, %v", copied, err)
		}
		if now := s.Stats(t0).Bytes; now != bytes {
			t.Errorf("%d bytes, before %d", now, bytes)
		}
		memtest.SetMaxBytes(&s.Capacity, bytes)
		if copied, err := s.Copy([]byte("k"), []byte("a"), true, memtest.At(t0)); copied || !errors.Is(err, store.ErrFull) {
			t.Errorf("over one that takes less: %v, %v", copied, err)
		}
		if st, ok := s.Get([]byte("a"), memtest.At(t0)); !ok || st != memtest.Live(t0, 2*second) {
			t.Errorf("what could not be replaced is %+v, %v", st, ok)
		}
		if _, moved, _ := s.RenameNew([]byte("k"), []byte("new"), memtest.At(t0)); !moved {
			t.Error("a rename takes no room")
		}
		memtest.ExpectKeys(t, s, t0, "a", "b", "new")
		memtest.MustAudit(t, s)
	}
}

// Keys are copied and renamed in a ring while all take from them, and while there is room for half of them or for all. Each
// copy is whole: a key holds both limits or is not there.
func TestCopiesWhileAllTake(t *testing.T) {
	for _, maxKeys := range []int64{4, 1000} {
		s := memory.New(memory.Options{MaxKeys: maxKeys, Shards: 8, Journal: true})
		var clock atomic.Int64
		clock.Store(t0)
		key := func(i int) []byte { return fmt.Append(nil, "key ", i%8) }
		parallel(6, func(worker int) {
			for i := range 500 {
				now := clock.Add(1)
				switch worker {
				case 0:
					if _, err := s.Copy(key(i), key(i+1), i%3 == 0, memtest.At(now)); err != nil {
						t.Error(err)
					}
				case 1:
					s.RenameNew(key(i), key(i+3), memtest.At(now))
				case 2:
					memtest.Drain(s, func(c memory.Change) {
						if c.State.Limits != nil && len(*c.State.Limits) != 2 {
							t.Errorf("%q is told with %d limits", c.Key, len(*c.State.Limits))
						}
					})
				default:
					_, err := s.Take(under(t, string(key(i)), "1000/1h,algo=log", "1000/1h"), store.TakeOptions{Cost: 1}, memtest.At(now))
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
		s.Scan(0, 1000, clock.Load(), func(name string, _ store.Value) {
			if n := count(s, name, clock.Load()); n != 2 {
				t.Errorf("%q holds %d limits", name, n)
			}
		})
		memtest.MustAudit(t, s)
	}
}

// What the keys take adds up to what the store says it holds.
func TestKeyBytes(t *testing.T) {
	s := memory.New(memory.Options{})
	memtest.MustPut(t, s, "k", memtest.Live(t0, second), t0)
	memtest.MustPut(t, s, string(make([]byte, 1000)), memtest.Live(t0, second), t0)
	memtest.MustTake(t, s, 3, t0, under(t, "limits", "5/1h", "100/1h,algo=log"))
	sum := int64(0)
	s.Scan(0, 10, t0, func(key string, _ store.Value) {
		n, ok := s.KeyBytes([]byte(key), t0)
		if !ok {
			t.Errorf("%q is not there", key)
		}
		sum += n
	})
	if want := s.Stats(t0).Bytes; sum != want {
		t.Errorf("%d bytes, the store says %d", sum, want)
	}
	if n, ok := s.KeyBytes([]byte("k"), t0); n != table.OverheadBytes || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	if _, ok := s.KeyBytes([]byte("k"), t0+second); ok {
		t.Error("a dead key takes something")
	}
}
