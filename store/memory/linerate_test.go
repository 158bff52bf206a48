//go:build !race

package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// At any rate, and with a timer that comes late, the moments are those of the limit.
func TestTheRateOfALine(t *testing.T) {
	for _, c := range []struct {
		limit string
		n     int
		gap   time.Duration
	}{{"100/1s,burst=1", 1000, 10 * time.Millisecond}, {"10000/1s,burst=1", 20_000, 100 * time.Microsecond},
		{"100000/1s,burst=1", 50_000, 10 * time.Microsecond}} {
		for _, late := range []time.Duration{1, 7 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				lateClock := func() int64 { return (clock() + int64(late) - 1) / int64(late) * int64(late) }
				s := memory.New(memory.Options{Now: lateClock, MaxWaiters: 1 << 20})
				start := clock()
				var all []*waiter
				for range c.n {
					all = append(all, await(s, time.Hour, 1, memtest.Call(t, "k", c.limit)))
				}
				celldtest.Pass(time.Duration(c.n)*c.gap + late)
				last := all[c.n-1]
				if want := time.Duration(c.n-1) * c.gap; !last.granted() || last.at(start) < want-late || last.at(start) > want+late {
					t.Errorf("%s, late by %v: %v for %d, want %v", c.limit, late, last.at(start), c.n, want)
				}
				retry := plainly(s, 1, memtest.Call(t, "k", c.limit)).taken().RetryAfterNS
				if retry != cell.Never && retry > uint64(c.gap+late) {
					t.Errorf("%s: then the next waits for %v", c.limit, time.Duration(retry))
				}
			})
		}
	}
}
