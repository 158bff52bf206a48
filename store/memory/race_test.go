package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
)

// parallel runs fn in n goroutines and waits for all.
func parallel(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

// Inserts come from all sides, with dead keys in other shards to make room for them; at no time are there too many keys.
func TestNeverMoreThanMaxKeys(t *testing.T) {
	for _, maxKeys := range []int64{1, 2, 50} {
		s := memory.New(memory.Options{MaxKeys: maxKeys, Shards: 8})
		var now atomic.Int64
		now.Store(t0)
		parallel(4, func(worker int) {
			for i := range 4000 {
				memtest.MustPut(t, s, fmt.Sprint(worker, " ", i), memtest.Live(now.Load(), 1+rand.Int64N(100)), t0)
				if got := int64(s.Len(now.Add(1))); got > maxKeys {
					t.Errorf("%d keys of %d", got, maxKeys)
					return
				}
			}
		})
	}
}

func TestNoEvictionAdmitsExactlyMaxKeys(t *testing.T) {
	const maxKeys = 500
	s := memory.New(memory.Options{MaxKeys: maxKeys, NoEviction: true, Shards: 8})
	var admitted atomic.Int64
	parallel(4, func(worker int) {
		for i := range 1000 {
			switch err := memtest.Put(s, fmt.Sprint(worker, " ", i), memtest.Live(t0, second), t0); {
			case err == nil:
				admitted.Add(1)
			case !errors.Is(err, store.ErrFull):
				t.Error(err)
			}
		}
	})
	if got := admitted.Load(); got != maxKeys || s.Len(t0) != maxKeys {
		t.Errorf("%d admitted, %d held, want %d", got, s.Len(t0), maxKeys)
	}
}

// Two callers create the same key if it is not there (SET NX). Both find it absent, and both wait for the only room
// there is: that of a dead key in another shard, which a third caller keeps locked until both have asked. The one that
// comes second must be asked again.
func TestUpdateAsksAgainWhenTheKeyCameIntoBeing(t *testing.T) {
	for attempt := 0; ; attempt++ {
		s := memory.New(memory.Options{MaxKeys: 1, Shards: 1024})
		memtest.MustPut(t, s, "dying", memtest.Live(t0, 1), t0)
		var asked, creators atomic.Int64
		bothAsked, locked := make(chan struct{}), make(chan struct{})
		setNX := func() {
			created := false
			err := s.Update([]byte("new"), memtest.At(t0+1), func(_ store.Value, ok bool) (store.Value, bool) {
				if asked.Add(1) == 2 {
					close(bothAsked)
				}
				created = !ok
				if ok {
					return store.Value{}, false
				}
				return memtest.Live(t0, second), true
			})
			if err != nil {
				t.Error(err)
			}
			if created {
				creators.Add(1)
			}
		}
		sameShard := false
		parallel(3, func(i int) {
			if i > 0 {
				<-locked
				setNX()
				return
			}
			_ = s.Update([]byte("dying"), memtest.At(t0), func(store.Value, bool) (store.Value, bool) {
				close(locked)
				select {
				case <-bothAsked:
				case <-time.After(10 * time.Second): // both keys are in the same shard, once in 1,024 times
					sameShard = true
				}
				return store.Value{}, false
			})
		})
		if sameShard && attempt < 3 {
			continue
		}
		if creators.Load() != 1 || asked.Load() != 3 {
			t.Errorf("%d callers created the key, asked %d times; want 1, and 3 times", creators.Load(), asked.Load())
		}
		memtest.ExpectKeys(t, s, t0+1, "new")
		return
	}
}

func TestUpdatesOfOneKeyFollowEachOther(t *testing.T) {
	const workers, each = 8, 1000
	s := memory.New(memory.Options{})
	parallel(workers, func(int) {
		for range each {
			_ = s.Update([]byte("k"), memtest.At(0), func(old store.Value, _ bool) (store.Value, bool) {
				return store.Value{TAT: old.TAT + 1}, true
			})
		}
	})
	if st, _ := s.Get([]byte("k"), memtest.At(0)); st.TAT != workers*each {
		t.Errorf("%d, want %d", st.TAT, workers*each)
	}
}

// All methods at once. Nothing hangs, and what is left at the end is consistent, in the store and in a copy that was
// kept by its journal all the time.
func TestAllAtOnce(t *testing.T) {
	for _, shards := range []int{1, 2, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 200, Shards: shards, Journal: true})
			limit := memtest.MustLimit(t, 3, 1_000_000, 1)
			var clock atomic.Int64
			clock.Store(t0)
			key := func() []byte { return fmt.Append(nil, rand.IntN(400)) }
			a := func() store.Access { return store.Access{NowNS: clock.Add(20), NoTouch: rand.IntN(2) == 0} }
			set := func(store.Value, bool) (store.Value, bool) {
				return store.Value{TAT: uint64(clock.Load() + rand.Int64N(2000)), ExpiryNS: rand.Int64N(3) - 1}, true
			}
			copied := map[string]store.Value{}
			methods := []func(i int){
				func(int) { _, _ = s.Throttle(key(), limit, rand.Int64N(3)-1, a()) },
				func(int) { _, _ = s.Throttle(key(), limit, 1, a()) },
				func(int) {
					reqs := make([]store.Request, 1+rand.IntN(store.MaxTakes))
					for i := range reqs {
						reqs[i] = store.Request{Key: key(), Bucket: limit, Quantity: rand.Int64N(3) - 1}
					}
					s.ThrottleBatch(reqs, a(), nil)
				},
				func(int) { _ = s.Update(key(), a(), set) },
				func(int) { s.Get(key(), a()); s.Delete(key(), clock.Load()); s.IdleNS(key(), clock.Load()) },
				func(int) { s.Rename([]byte("1"), []byte("2"), memtest.At(clock.Load())) },
				func(int) {
					s.Rename([]byte("2"), []byte("1"), memtest.At(clock.Load()))
					s.Rename(key(), key(), memtest.At(clock.Load()))
				},
				func(int) { s.Len(clock.Load()); s.Random(clock.Load()); s.Stats(clock.Load()) },
				func(int) { contentsOf(s, clock.Load()) },
				func(i int) {
					if i%50 == 0 {
						s.Flush()
					}
					s.Sweep(clock.Load())
				},
				func(i int) {
					if i%20 == 0 {
						memtest.SetMaxKeys(&s.Capacity, 1+rand.Int64N(300))
						memtest.SetMaxBytes(&s.Capacity, rand.Int64N(2)*100*table.OverheadBytes)
						memtest.SetNoEviction(&s.Capacity, rand.IntN(4) == 0)
						memtest.SetCapacityNow(&s.Capacity, 1+rand.Int64N(300), rand.Int64N(2)*100*table.OverheadBytes, rand.IntN(4) == 0)
					}
				},
				func(i int) {
					w := s.Watch(key(), clock.Load())
					w.Changed(clock.Load())
					w.Stop()
				},
				func(int) { memtest.Drain(s, func(c memory.Change) { memtest.Replay(copied, c) }) },
			}
			parallel(len(methods), func(i int) {
				for turn := range 1000 {
					methods[i](turn)
				}
			})

			now := clock.Load()
			memtest.SetNoEviction(&s.Capacity, false)
			memtest.SetMaxBytes(&s.Capacity, 0)
			memtest.SetMaxKeys(&s.Capacity, 150)
			held := memtest.Contents(t, s, now)
			if got := s.Len(now); got != len(held) || got > 150 {
				t.Errorf("Len %d, scanned %d", got, len(held))
			}
			var bytes int64
			for key := range held {
				bytes += table.CostBytes(len(key))
			}
			if st := s.Stats(now); st.Bytes != bytes {
				t.Errorf("%d bytes, want %d", st.Bytes, bytes)
			}
			memtest.Drain(s, func(c memory.Change) { memtest.Replay(copied, c) })
			copied = memtest.WithoutDead(copied, held, now)
			if !maps.Equal(copied, held) {
				t.Errorf("the copy has %d keys, the store %d, or other states", len(copied), len(held))
			}
			s.Flush()
			if st := s.Stats(now); st.Bytes != 0 || st.WithExpiry != 0 || s.Len(now) != 0 {
				t.Errorf("after a flush: %+v", st)
			}
		})
	}
}

// A large table is touched without its locks while others grow, empty and flush it.
func TestBatchesOfALargeTableThatChanges(t *testing.T) {
	const n = 30_000
	limit := memtest.MustLimit(t, 1<<30, 1000, 1)
	s := memory.New(memory.Options{MaxKeys: n, Shards: 4})
	keys := memtest.Keys16(2 * n)
	for _, key := range keys[:n] {
		memtest.MustAllow(t, s, key, limit, t0)
	}
	parallel(4, func(worker int) {
		reqs := make([]store.Request, 64)
		for turn := range 200 {
			for i := range reqs {
				reqs[i] = store.Request{Key: keys[rand.IntN(n+n*(turn%2))], Bucket: limit, Quantity: 1 - int64(turn/50%2*2)}
			}
			s.ThrottleBatch(reqs, memtest.At(t0), nil)
			for _, r := range reqs {
				if r.Err != nil || r.Decision.Limited {
					t.Errorf("%+v", r)
					return
				}
			}
			if worker == 0 && turn == 150 {
				s.Flush()
			}
		}
	})
	if held := s.Len(t0); held > n {
		t.Errorf("%d keys of %d", held, n)
	}
}

// What panics in a caller's function does not keep the shard locked.
func TestAPanicInUpdateLeavesNoLock(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	func() {
		defer func() { _ = recover() }()
		_ = s.Update([]byte("k"), memtest.At(t0), func(store.Value, bool) (store.Value, bool) { panic("fn") })
	}()
	memtest.MustPut(t, s, "k", memtest.Plain, t0)
	memtest.ExpectKeys(t, s, t0, "k")
}

// contentsOf is a whole scan of a store that may change meanwhile.
func contentsOf(s *memory.Store, nowNS int64) {
	for cursor := uint64(0); ; {
		if cursor = s.Scan(cursor, 10, nowNS, func(string, store.Value) {}); cursor == 0 {
			return
		}
	}
}
