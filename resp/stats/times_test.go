package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every time is in a bucket that ends at most 1/128 above it, and buckets follow each other without a gap.
func TestTimesBuckets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		ns := 1 + rng.Int64N(1<<(1+rng.IntN(29)))
		bucket := timesBucket(ns)
		highest, lowest := timesHighest(bucket), timesHighest(bucket-1)+1
		if ns < lowest || ns > highest || (highest-lowest)*128 > ns {
			t.Fatalf("%d ns is in the bucket %d, from %d to %d", ns, bucket, lowest, highest)
		}
	}
	for ns, want := range map[int64]int{
		-5: 1, 0: 1, 1: 1, 255: 255, 256: 256, 257: 256, timesMostNS: timesBucket(timesMostNS), 1 << 62: timesBucket(timesMostNS),
	} {
		if got := timesBucket(ns); got != want || got >= timesBuckets {
			t.Errorf("%d ns is in the bucket %d, want %d", ns, got, want)
		}
	}
}

// Percentiles and doublings say what the times themselves do.
func TestTimesRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var all []int64
		h := &Times{}
		for range 1 + rng.IntN(3000) {
			ns, n := 1+rng.Int64N(1<<(1+rng.IntN(29))), 1+rng.IntN(5)
			h.Add(ns, int64(n))
			all = append(all, slices.Repeat([]int64{ns}, n)...)
		}
		slices.Sort(all)
		r := &TimesRead{}
		h.Read(r)
		for _, p := range []float64{0.1, 50, 99, 99.9, 100} {
			wanted := all[max(1, min(int(p/100*float64(len(all))+0.5), len(all)))-1]
			if got := r.Percentile(p); got != timesHighest(timesBucket(wanted)) {
				t.Fatalf("p%v of %d times is %d ns, want that of %d", p, len(all), got, wanted)
			}
		}
		last := int64(0)
		r.Doublings(func(us, calls int64) {
			within, _ := slices.BinarySearch(all, us*1000)
			after, _ := slices.BinarySearch(all, (us+1)*1000)
			if calls < int64(within) || calls > int64(after) || calls <= last {
				t.Fatalf("%d calls within %d µs, want %d to %d, and more than %d", calls, us, within, after, last)
			}
			last = calls
		})
		if last != int64(len(all)) || r.Calls != last {
			t.Fatalf("%d of %d calls are counted", last, len(all))
		}
	}
}

func TestTimesAsHistogram(t *testing.T) {
	var st Times
	for _, ns := range []int64{1, 1000, 1024, 4095, 4096, 2_000_000_000} {
		st.Add(ns, 1)
	}
	var r TimesRead
	st.Read(&r)
	h := r.Histogram(7)
	if h.Count != 6 || h.SumNS != 7 || h.MostNS[1] != 4096 || h.Below[0] != 2 || h.Below[1] != 4 || h.Below[2] != 5 || h.Below[10] != 6 {
		t.Errorf("%+v", h)
	}
}

// Each command counts in the step that it took.
func TestTimesInSteps(t *testing.T) {
	var all Times
	for _, ns := range []int64{1, 1023, 1024, 2047, 2048, 5_000_000, 999_999_999, 60_000_000_000} {
		all.Add(ns, 1)
	}
	var r TimesRead
	all.Read(&r)
	mostNS, calls := r.Steps()
	want := make([]int64, 21)
	want[0], want[1], want[2], want[13], want[20] = 2, 2, 1, 1, 2
	if !slices.Equal(calls, want) || mostNS[13] != 1024<<13 || len(mostNS) != 21 {
		t.Errorf("%v in %v, want %v", calls, mostNS, want)
	}
}
