package remote

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"celld/store"
)

func TestContentionFigures(t *testing.T) {
	if os.Getenv("FIGURES") == "" {
		t.Skip("FIGURES is not set")
	}
	socket := startRedis(t)
	for _, n := range []int{1, 2, 8, 20} {
		stores := make([]*Store, n)
		for i := range stores {
			stores[i] = newTestStore(t, socket, Options{})
		}
		took := make([][]time.Duration, n)
		var wg sync.WaitGroup
		end := time.Now().Add(2 * time.Second)
		for i, s := range stores {
			wg.Go(func() {
				for time.Now().Before(end) {
					r := store.TakeRequest{Calls: []store.Call{{Key: []byte(fmt.Sprint("k", n)), Limit: literal(t, "1000000/1s,algo=slide,buckets=4")}}, TakeOptions: store.TakeOptions{Cost: 1}}
					start := time.Now()
					if s.takeNow(&r); r.Err != nil {
						t.Error(r.Err)
					}
					took[i] = append(took[i], time.Since(start))
				}
			})
		}
		wg.Wait()
		var all []time.Duration
		least, most := 1<<30, 0
		conflicts := int64(0)
		for i := range took {
			all = append(all, took[i]...)
			least, most = min(least, len(took[i])), max(most, len(took[i]))
			conflicts += stores[i].stats.Conflicts.Load()
		}
		slices.Sort(all)
		t.Logf("%d stores: %d a second, %.2f conflicts a success, p50 %v, p99 %v, worst %v; from %d to %d each",
			n, len(all)/2, float64(conflicts)/float64(len(all)), all[len(all)/2], all[len(all)*99/100], all[len(all)-1], least, most)
	}
}
