package memory_test

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// passers ask for the same keys at once, all they can, second by second, while others go on with the rest of what a store does.
type passers struct {
	store   *memory.Store
	keys    [][]byte // of which each third is asked by a kind of its own
	passed  []atomic.Int64
	flushes atomic.Int64
}

// ask asks for all keys as one of them, in batches.
func (p *passers) ask(t *testing.T, nowNS int64) {
	bucket := memtest.MustLimit(t, 9, 5, 1)
	limits := []string{"5/1s,burst=10", "5/1s,algo=window"}
	for first := 0; first < len(p.keys); first += 30 {
		last := min(first+30, len(p.keys))
		reqs, takes := make([]store.Request, 0, 10), make([]store.TakeRequest, 0, 20)
		for i, key := range p.keys[first:last] {
			if kind := (first + i) % 3; kind == 0 {
				reqs = append(reqs, store.Request{Key: key, Bucket: bucket, Quantity: 1})
			} else {
				takes = append(takes,
					store.TakeRequest{Calls: memtest.Calls(t, string(key), limits[kind-1]), TakeOptions: store.TakeOptions{Cost: 1}})
			}
		}
		p.store.ThrottleBatch(reqs, memtest.At(nowNS), nil)
		p.store.TakeBatch(takes, memtest.At(nowNS), nil)
		for i := range last - first {
			r, take := i/3, i-i/3-1 // one in three is in reqs
			if i%3 == 0 {
				if reqs[r].Err != nil {
					t.Error(reqs[r].Err)
				} else if !reqs[r].Decision.Limited {
					p.passed[first+i].Add(1)
				}
			} else if takes[take].Err != nil {
				t.Error(takes[take].Err)
			} else {
				p.passed[first+i].Add(takes[take].Taken.Granted)
			}
		}
	}
}

// Of each key just what its limit says passes, whoever asks at once, and however long the key is: no more, and no less but after a
// flush no more than that anew. And a copy learns of all of it.
func TestPassersAtOnce(t *testing.T) {
	const most, callers, turns = 30, 3, 5
	seconds := 50
	if celldtest.Thorough {
		seconds = 400
	}
	for _, flush := range []bool{false, true} {
		p := &passers{store: memory.New(memory.Options{Shards: 2, Journal: true}), passed: make([]atomic.Int64, most)}
		copied := map[string]store.Value{}
		told := func(c memory.Change) { memtest.Replay(copied, c) }
		for i := range most {
			p.keys = append(p.keys, fmt.Append(nil, strings.Repeat("x", 10*i), i))
		}
		nowNS, grown, cursor := t0, 0, uint64(0)
		position, more := memory.Position{}, false
		for elapsed := range int64(seconds) {
			nowNS = t0 + elapsed*second
			grow := memtest.MustLimit(t, 1, 1, 3600)
			rest := []func(){
				func() { memtest.Drain(p.store, told) },
				func() { p.store.SetWall(nowNS, nowNS) },
				func() {
					cursor = p.store.Scan(cursor, 50, nowNS, func(string, store.Value) {})
					p.store.Stats(nowNS)
				},
				func() {
					if position, more = p.store.Export(position, nowNS, func([]byte, store.Value) {}); !more {
						position = memory.Position{}
					}
				},
				func() { // the shards grow, and much of it goes again
					for range 100 {
						grown++
						_, _ = p.store.Throttle(fmt.Append(nil, "long enough for a tail", grown%20_000), grow, 1, memtest.At(nowNS))
						p.store.Delete(fmt.Append(nil, "long enough for a tail", grown*7%5_000), nowNS)
					}
				},
				func() {
					if flush {
						p.store.Flush()
						p.flushes.Add(1)
					}
				},
			}
			var left atomic.Int64
			left.Store(callers)
			parallel(callers+1, func(i int) {
				if i > 0 {
					for range turns {
						p.ask(t, nowNS)
					}
					left.Add(-1)
					return
				}
				for turn := int(elapsed); left.Load() > 0; turn++ {
					rest[turn%len(rest)]()
				}
			})
			for i := range p.passed {
				want := []int64{10 + 5*elapsed, 10 + 5*elapsed, 5 + 5*elapsed}[i%3]
				got := p.passed[i].Load()
				if !flush && got != want || got > want+10*p.flushes.Load() {
					t.Fatalf("after %d s and %d flushes %d calls have passed on a key of %d bytes, want %d", elapsed, p.flushes.Load(), got,
						len(p.keys[i]), want)
				}
			}
		}
		memtest.MustAudit(t, p.store)
		memtest.Drain(p.store, told)
		held := memtest.Contents(t, p.store, nowNS)
		sameEnd := func(a, b store.Value) bool { return a.TAT == b.TAT }
		if copied = memtest.WithoutDead(copied, held, nowNS); !maps.EqualFunc(copied, held, sameEnd) {
			t.Errorf("the copy has %d keys and the store %d, or other ends", len(copied), len(held))
		}
	}
}
