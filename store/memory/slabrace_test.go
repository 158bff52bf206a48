package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// Slabs come and go under all that holds the numbers of slots: batches that touch them without a lock, scans, exports and
// drains, while policies change and the wall clock is set.
func TestSlabsComeAndGoUnderAll(t *testing.T) {
	const keys = 40_000
	turns := 2
	if celldtest.Thorough {
		turns = 4
	}
	texts := []string{"9/1h", "9/day", "9/1h,algo=log", "9/1h,algo=slide,buckets=3", "9/1h,algo=window,align=clock,block=1m"}
	for _, o := range []memory.Options{{MaxKeys: keys, Shards: 2, Journal: true}, {MaxKeys: keys / 2, Shards: 8, Journal: true}} {
		s := memory.New(o)
		var clock atomic.Int64
		clock.Store(t0)
		now := func() int64 { return clock.Add(second / 10) }
		key := func(i int) []byte { return fmt.Appendf(nil, "a key that has a tail %d", i%keys) }
		taken := func(err error) {
			if err != nil && !errors.Is(err, store.ErrWrongType) && !errors.Is(err, store.ErrFull) {
				t.Error(err)
			}
		}
		throttle := memtest.MustLimit(t, 3, 1, 3600)
		takes := func(int) { // of one stretch of keys, so that whole slabs come
			calls, reqs := make([]store.Call, store.MaxTakes), make([]store.TakeRequest, store.MaxTakes)
			first := rand.IntN(keys)
			for range 40 {
				for i := range reqs {
					first++
					calls[i] = memtest.Call(t, string(key(first)), texts[first/1000%len(texts)])
					if p := s.PolicyNamed("p"); p != nil && first%3 == 0 {
						calls[i].Limit, calls[i].Policy = &p.Limits[0].Limit, p.Limits[0]
					}
					reqs[i] = store.TakeRequest{Calls: calls[i : i+1],
						TakeOptions: store.TakeOptions{Cost: int64(first % 2), Mode: cell.Mode(first % 3)}}
				}
				s.TakeBatch(reqs, memtest.At(now()), nil)
				for i := range reqs {
					taken(reqs[i].Err)
				}
			}
		}
		methods := []func(turn int){
			takes, takes,
			func(int) {
				reqs := make([]store.Request, 64)
				first := rand.IntN(keys)
				for range 40 {
					for i := range reqs {
						first++
						reqs[i] = store.Request{Key: key(first), Bucket: throttle, Quantity: 1}
					}
					s.ThrottleBatch(reqs, memtest.At(now()), nil)
					for i := range reqs {
						taken(reqs[i].Err)
					}
				}
			},
			func(int) { // whole slabs go
				for first, i := rand.IntN(keys), 0; i < keys/3; i++ {
					s.Delete(key(first+i), clock.Load())
				}
			},
			func(int) {
				for range 1000 {
					s.Rename(key(rand.IntN(keys)), key(rand.IntN(keys)), memtest.At(clock.Load()))
				}
			},
			func(turn int) {
				_, _ = s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, texts[turn%len(texts)])}, policy.Options{Reset: turn%7 == 0})
				if turn%5 == 0 {
					s.DeletePolicy("p")
				}
				for range 100 {
					s.Sweep(clock.Load())
				}
			},
			func(turn int) {
				contentsOf(s, clock.Load())
				s.Random(clock.Load())
				memtest.SetMaxKeys(&s.Capacity, o.MaxKeys/int64(1+turn%3*20))
			},
			func(int) {
				p, more := s.StartExport(), true
				for more {
					p, more = s.Export(p, clock.Load(), func([]byte, store.Value) {})
				}
				s.EndExport(p)
			},
			func(turn int) {
				nowNS := clock.Load()
				s.SetWall(nowNS+int64(turn%5-2)*hour/3, nowNS)
				if turn%30 == 29 {
					s.Flush()
				}
			},
			func(int) {
				memtest.Drain(s, func(memory.Change) {})
				s.DrainSettings(func(policy.Change) {})
			},
		}
		var left atomic.Int64 // those that are still at work
		left.Store(4)
		parallel(len(methods), func(i int) {
			for turn := 0; turn < turns || i >= 4 && left.Load() > 0; turn++ {
				methods[i](turn)
			}
			if i < 4 {
				left.Add(-1)
			}
		})
		memtest.MustAudit(t, s)
		s.Flush()
		memtest.MustAudit(t, s)
	}
}
