package memory_test

import (
	"fmt"
	"testing"

	"celld/store/memory"
	"celld/store/memory/memtest"
)

// redis-cell gives a key a TTL in whole milliseconds, so a bucket of about one is forgotten early or late and nearly
// twice the rate passes. Here no span of any length lets more pass than max burst + 1 + rate × span.
func TestNeverMoreThanBurstAndRate(t *testing.T) {
	const (
		perSecond  = 5000
		intervalNS = second / perSecond // 200 µs
		maxBurst   = 4
	)
	limit := memtest.MustLimit(t, maxBurst, perSecond, 1)
	for _, stepNS := range []int64{50_000, 70_001, 190_000, 1_000_000, 1_000_001} {
		t.Run(fmt.Sprintf("step=%dns", stepNS), func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 2, Shards: 1})
			var passed []int64
			for i := range int64(4000) {
				now := t0 + i*stepNS
				for range 7 { // more than is allowed, at each instant
					d, err := s.Throttle([]byte("k"), limit, 1, memtest.At(now))
					if err != nil {
						t.Fatal(err)
					}
					if !d.Limited {
						passed = append(passed, now)
					}
				}
				memtest.MustPut(t, s, "another", memtest.Live(now, stepNS/2), now) // so the store is full, and swept
				s.Sweep(now)
			}
			// In a span of d ns, from one passed call to another, at most maxBurst + 1 + d / interval.
			for i := range passed {
				for _, j := range []int{i + maxBurst + 1, i + 10, i + 100, i + 1000, len(passed) - 1} {
					if j >= len(passed) || j < i {
						continue
					}
					if got, most := int64(j-i+1), maxBurst+1+(passed[j]-passed[i])/intervalNS; got > most {
						t.Fatalf("%d passed in %d ns, at most %d should", got, passed[j]-passed[i], most)
					}
				}
			}
			span := passed[len(passed)-1] - passed[0]
			if stepNS < intervalNS*maxBurst && int64(len(passed)) < span/intervalNS {
				t.Fatalf("only %d passed in %d ns", len(passed), span)
			}
		})
	}
}
