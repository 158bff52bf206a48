//go:build !race

package memory_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// BenchmarkScale shows what a second core brings. Each row is measured with one goroutine, with two on one store, and with two that
// have a store each, of half of the keys: the ceiling. Calls come in batches of 64. The time is the wall time of a call, so two
// goroutines can at best halve it. go -C bench run . has its rows by these names.
//
//	go -C bench run . -rows '^cores-' -peers celld -rounds 5
func BenchmarkScale(b *testing.B) {
	const batch = 64
	for _, ask := range []struct {
		name string
		new  func(cell.Limit) *asker
	}{
		{"throttle", throttles}, {"take", takes},
	} {
		for _, keys := range []int{1, 1_000, 1_000_000} {
			for _, mix := range []mix{{name: "denied", limit: "1/1h"}, {name: "pass", limit: "1/1m,burst=100000000"},
				{name: "mixed", limit: "1/1m,burst=100000000", fresh: 8}} {
				for _, crew := range []crew{{"one", 1, 1}, {"two", 2, 1}, {"ceiling", 2, 2}} {
					if keys < crew.stores || keys < 1000 && mix.fresh > 0 {
						continue
					}
					b.Run(fmt.Sprintf("%s/keys=%d/%s/%s", ask.name, keys, mix.name, crew.name), func(b *testing.B) {
						crew.run(b, keys, batch, mix, ask.new)
					})
				}
			}
		}
	}
}

// mix is what is asked: fresh of each 64 calls are for keys that are new, and the others for those that are there.
type mix struct {
	name, limit string
	fresh       int
}

type crew struct {
	name            string
	workers, stores int
}

// asker asks a store for a batch of keys.
type asker struct {
	keys [64][]byte
	ask  func(s *memory.Store, n int, nowNS int64)
}

func newAsker() *asker {
	a := &asker{}
	for j := range a.keys {
		a.keys[j] = []byte("........:a client")[:16:16]
	}
	return a
}

func (a *asker) set(j int, key uint64) { binary.LittleEndian.PutUint64(a.keys[j], key) }

func throttles(limit cell.Limit) *asker {
	a, reqs := newAsker(), make([]store.Request, 64)
	bucket, err := cell.NewBucket(limit.Burst-1, limit.Count, limit.PeriodNS/1e9)
	if err != nil {
		panic(err)
	}
	for j := range reqs {
		reqs[j] = store.Request{Key: a.keys[j], Bucket: bucket, Quantity: 1}
	}
	a.ask = func(s *memory.Store, n int, nowNS int64) { s.ThrottleBatch(reqs[:n], memtest.At(nowNS), nil) }
	return a
}

func takes(limit cell.Limit) *asker {
	a, reqs := newAsker(), make([]store.TakeRequest, 64)
	for j := range reqs {
		reqs[j] = store.TakeRequest{Calls: []store.Call{{Key: a.keys[j], Limit: &limit}}, TakeOptions: store.TakeOptions{Cost: 1}}
	}
	a.ask = func(s *memory.Store, n int, nowNS int64) { s.TakeBatch(reqs[:n], memtest.At(nowNS), nil) }
	return a
}

func (c crew) run(b *testing.B, keys, batch int, m mix, newAsker func(cell.Limit) *asker) {
	limit, err := cell.ParseLimit(m.limit)
	if err != nil {
		b.Fatal(err)
	}
	own := keys / c.stores
	stores := make([]*memory.Store, c.stores)
	for i := range stores {
		stores[i] = memory.New(memory.Options{MaxKeys: int64(2*keys + b.N + 1<<17)})
		a := newAsker(limit)
		for k := 0; k < own; k += batch {
			n := min(batch, own-k)
			for j := range n {
				a.set(j, uint64(k+j))
			}
			a.ask(stores[i], n, t0)
			a.ask(stores[i], n, t0) // the second use protects it
		}
	}
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	var wg sync.WaitGroup
	for w := range c.workers {
		wg.Go(func() {
			s, a := stores[w%c.stores], newAsker(limit)
			i, fresh := w*own/2, uint64(w+1)<<40
			for left := (b.N + w) / c.workers; left > 0; left -= batch {
				n := min(batch, left)
				for j := range n {
					if j < m.fresh {
						fresh++
						a.set(j, fresh)
						continue
					}
					i = nextBenchKey(i, own)
					a.set(j, uint64(i))
				}
				a.ask(s, n, t0+time.Since(start).Nanoseconds())
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	hits := int64(0)
	for _, s := range stores {
		hits += s.Stats(t0).Hits
	}
	if least := int64(b.N) - int64(b.N+2*batch)*int64(m.fresh)/int64(batch); hits < least {
		b.Fatalf("%d hits of %d calls", hits, b.N)
	}
}
