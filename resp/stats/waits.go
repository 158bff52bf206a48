package stats

import (
	"sync/atomic"

	"celld/resp/metrics"
)

// Waits counts the calls with WAIT that were granted, by how long they waited: up to 1 ms, 4 ms, and so on to 262 s, or longer.
type Waits struct {
	buckets [11]atomic.Int64
	ns      atomic.Int64
}

const firstWaitNS = 1_000_000

// Note counts a call that waited for so long.
func (t *Waits) Note(waitNS int64) {
	bucket := 0
	for most := int64(firstWaitNS); waitNS > most && bucket < len(t.buckets)-1; most *= 4 {
		bucket++
	}
	t.buckets[bucket].Add(1)
	t.ns.Add(waitNS)
}

// Histogram is of all that were noted.
func (t *Waits) Histogram() *metrics.Histogram {
	h := metrics.NewHistogram(firstWaitNS, len(t.buckets)-1)
	for i := range t.buckets {
		n := t.buckets[i].Load()
		h.Count += uint64(n)
		if i < len(h.Below) {
			h.Below[i] = h.Count
		}
	}
	h.SumNS = t.ns.Load()
	return h
}
