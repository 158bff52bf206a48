package stats

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"celld/resp/metrics"
)

// Times counts the calls of one command by their duration. Its buckets are at most 1/128 of a duration wide. They are Redis's (an
// HdrHistogram of two digits, up to a second), so percentiles and LATENCY HISTOGRAM agree with Redis's. It takes 24 KB.
type Times struct {
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

// Add counts n calls of ns each.
func (t *Times) Add(ns, n int64) { t.buckets[timesBucket(ns)].Add(n) }

// TimesRead is a copy of Times.
type TimesRead struct {
	buckets [timesBuckets]int64
	Calls   int64
}

// Read adds the calls to a copy.
func (t *Times) Read(r *TimesRead) {
	for i := range t.buckets {
		n := t.buckets[i].Load()
		r.buckets[i] += n
		r.Calls += n
	}
}

// Percentile is the duration, in nanoseconds, within which this many of 100 calls ended.
func (r *TimesRead) Percentile(p float64) (ns int64) {
	wanted, counted := max(1, int64(p/100*float64(r.Calls)+0.5)), int64(0)
	for i, n := range r.buckets {
		if counted += n; counted >= wanted {
			return timesHighest(i)
		}
	}
	return 0
}

// Doublings calls visit for 1.024 µs, 2.048 µs and so on, wherever more calls ended within that duration than within half of it.
func (r *TimesRead) Doublings(visit func(us, calls int64)) {
	before, counted, at := int64(0), int64(0), 0
	for ns := int64(1024); counted < r.Calls; ns *= 2 {
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

// Steps counts the calls in steps of 2 from 1.024 µs to 1.07 s. calls[i] took mostNS[i] at most, and more than the one before. Longer calls
// count in the last.
func (r *TimesRead) Steps() (mostNS, calls []int64) {
	const steps = 21
	mostNS, calls = make([]int64, steps), make([]int64, steps)
	for i := range mostNS {
		mostNS[i] = 1024 << i
	}
	for bucket, n := range r.buckets {
		at, _ := slices.BinarySearch(mostNS, timesHighest(bucket))
		calls[at] += n
	}
	return mostNS, calls
}

// Histogram is of bounds that are bounds of buckets, too: from 1.024 µs to 1.07 s.
func (r *TimesRead) Histogram(sumNS int64) *metrics.Histogram {
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
