package remote

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/remote/link/linktest"
)

// TestExpectationsOfTwo changes the same keys from two Stores, so that what each expects of a key is there at times, and package
// cell says what all answers are.
func TestExpectationsOfTwo(t *testing.T) {
	socket := linktest.StartRedis(t)
	var now atomic.Int64
	now.Store(4_102_444_800_000_000_000)
	var stores [2]*Store
	for i := range stores {
		stores[i] = newTestStore(t, socket, Options{Time: now.Load})
	}
	bucket, err := cell.NewBucket(20, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	tats := map[string]uint64{}
	for range 2000 {
		now.Add(rand.Int64N(1 << rand.IntN(29)))
		reqs := []store.Request{{Key: fmt.Append(nil, rand.IntN(3)), Bucket: bucket, Quantity: []int64{1, 1, 1, 3, -1}[rand.IntN(5)]}}
		stores[rand.IntN(4)/3].throttleNow(reqs, store.Access{NowNS: now.Load()}) // one more often than the other
		r := reqs[0]
		next, want, err := bucket.Throttle(tats[string(r.Key)], now.Load(), r.Quantity)
		if err != nil || r.Err != nil || r.Decision != want {
			t.Fatalf("%+v, %v, want %+v, %v", r.Decision, r.Err, want, err)
		}
		if !want.Limited {
			tats[string(r.Key)] = next
		}
	}
	for i, s := range stores {
		if met, missed := s.stats.Expected.Load(), s.stats.ExpectedMissed.Load(); met == 0 || missed == 0 {
			t.Errorf("Store %d: %d expectations met, %d missed", i, met, missed)
		}
	}
}
