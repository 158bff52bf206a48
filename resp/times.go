package resp

import (
	"math/bits"
	"sync/atomic"
)

// times is how long the calls of one command took. Its buckets are at most 1/128 of a time wide. They are those of Redis
// (an HdrHistogram of two digits up to a second), so that percentiles and LATENCY HISTOGRAM read alike. It takes 24 KB.
type times struct {
	buckets [timesBuckets]atomic.Int64
}

const (
	timesMostNS   = 1_000_000_000 // what took longer counts as this
	timesDoubling = 128           // buckets from one power of two to the next
	timesBuckets  = 24 * timesDoubling
)

func timesBucket(ns int64) int {
	ns = min(max(ns, 1), timesMostNS)
	shift := max(0, bits.Len64(uint64(ns))-8)
	return shift*timesDoubling + int(ns>>shift)
}

// timesHighest is the longest time that a bucket counts.
func timesHighest(bucket int) (ns int64) {
	shift := max(0, bucket/timesDoubling-1)
	return int64(bucket-shift*timesDoubling+1)<<shift - 1
}

func (t *times) add(ns, n int64) { t.buckets[timesBucket(ns)].Add(n) }

// timesRead is the times of one moment.
type timesRead struct {
	buckets [timesBuckets]int64
	calls   int64
}

func (t *times) read() *timesRead {
	r := &timesRead{}
	for i := range t.buckets {
		r.buckets[i] = t.buckets[i].Load()
		r.calls += r.buckets[i]
	}
	return r
}

// percentile is the time within which so many of a hundred calls were done.
func (r *timesRead) percentile(p float64) (ns int64) {
	wanted, counted := max(1, int64(p/100*float64(r.calls)+0.5)), int64(0)
	for i, n := range r.buckets {
		if counted += n; counted >= wanted {
			return timesHighest(i)
		}
	}
	return 0
}

// doublings calls visit with each time of 1.024 µs, 2.048 µs and so on within which more calls were done than within the one before.
func (r *timesRead) doublings(visit func(us, calls int64)) {
	before, counted, at := int64(0), int64(0), 0
	for ns := int64(1024); counted < r.calls; ns *= 2 {
		bucket := timesBucket(ns)
		for ; at <= bucket; at++ {
			counted += r.buckets[at]
		}
		if counted > before {
			visit(timesHighest(bucket)/1000, counted)
		}
		before = counted
	}
}
