package resp

import (
	"math/bits"
	"sync/atomic"
)

// times counts the calls of one command by their duration. Its buckets are at most 1/128 of a duration wide. They are Redis's (an
// HdrHistogram of two digits, up to a second), so percentiles and LATENCY HISTOGRAM agree with Redis's. It takes 24 KB.
type times struct {
	buckets [timesBuckets]atomic.Int64
}

const (
	timesMostNS   = 1_000_000_000 // longer calls count as this
	timesDoubling = 128           // buckets between two powers of two
	timesBuckets  = 24 * timesDoubling
)

func timesBucket(ns int64) int {
	ns = min(max(ns, 1), timesMostNS)
	shift := max(0, bits.Len64(uint64(ns))-8)
	return shift*timesDoubling + int(ns>>shift)
}

// timesHighest is the longest duration in a bucket, in nanoseconds.
func timesHighest(bucket int) (ns int64) {
	shift := max(0, bucket/timesDoubling-1)
	return int64(bucket-shift*timesDoubling+1)<<shift - 1
}

func (t *times) add(ns, n int64) { t.buckets[timesBucket(ns)].Add(n) }

// timesRead is a copy of times.
type timesRead struct {
	buckets [timesBuckets]int64
	calls   int64
}

// read adds the calls to a copy.
func (t *times) read(r *timesRead) {
	for i := range t.buckets {
		n := t.buckets[i].Load()
		r.buckets[i] += n
		r.calls += n
	}
}

// percentile is the duration, in nanoseconds, within which this many of 100 calls ended.
func (r *timesRead) percentile(p float64) (ns int64) {
	wanted, counted := max(1, int64(p/100*float64(r.calls)+0.5)), int64(0)
	for i, n := range r.buckets {
		if counted += n; counted >= wanted {
			return timesHighest(i)
		}
	}
	return 0
}

// doublings calls visit for 1.024 µs, 2.048 µs and so on, wherever more calls ended within that duration than within half of it.
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
