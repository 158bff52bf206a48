package resp

import (
	"sync/atomic"

	"celld/resp/metrics"
)

// waitTimes counts the calls with WAIT that were granted, by how long they waited: up to 1 ms, 4 ms, and so on to 262 s, or longer.
type waitTimes struct {
	buckets [11]atomic.Int64
	ns      atomic.Int64
}

const firstWaitNS = 1_000_000

func (t *waitTimes) note(waitNS int64) {
	bucket := 0
	for most := int64(firstWaitNS); waitNS > most && bucket < len(t.buckets)-1; most *= 4 {
		bucket++
	}
	t.buckets[bucket].Add(1)
	t.ns.Add(waitNS)
}

func (t *waitTimes) histogram() *metrics.Histogram {
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

// histogram is of bounds that are bounds of buckets, too: from 1.024 µs to 1.07 s.
func (r *timesRead) histogram(sumNS int64) *metrics.Histogram {
	h := metrics.NewHistogram(1024, 11)
	at := 0
	for i, most := range h.MostNS {
		for last := timesBucket(most - 1); at <= last; at++ {
			h.Count += uint64(r.buckets[at])
		}
		h.Below[i] = h.Count
	}
	h.SumNS = sumNS
	return h
}
