package resp

import (
	"celld/resp/command"
	"math/rand/v2"
	"slices"
	"strings"
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
	for ns, want := range map[int64]int{-5: 1, 0: 1, 1: 1, 255: 255, 256: 256, 257: 256, timesMostNS: timesBucket(timesMostNS), 1 << 62: timesBucket(timesMostNS)} {
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
		h := &times{}
		for range 1 + rng.IntN(3000) {
			ns, n := 1+rng.Int64N(1<<(1+rng.IntN(29))), 1+rng.IntN(5)
			h.add(ns, int64(n))
			all = append(all, slices.Repeat([]int64{ns}, n)...)
		}
		slices.Sort(all)
		r := &timesRead{}
		h.read(r)
		for _, p := range []float64{0.1, 50, 99, 99.9, 100} {
			wanted := all[max(1, min(int(p/100*float64(len(all))+0.5), len(all)))-1]
			if got := r.percentile(p); got != timesHighest(timesBucket(wanted)) {
				t.Fatalf("p%v of %d times is %d ns, want that of %d", p, len(all), got, wanted)
			}
		}
		last := int64(0)
		r.doublings(func(us, calls int64) {
			within, _ := slices.BinarySearch(all, us*1000)
			after, _ := slices.BinarySearch(all, (us+1)*1000)
			if calls < int64(within) || calls > int64(after) || calls <= last {
				t.Fatalf("%d calls within %d µs, want %d to %d, and more than %d", calls, us, within, after, last)
			}
			last = calls
		})
		if last != int64(len(all)) || r.calls != last {
			t.Fatalf("%d of %d calls are counted", last, len(all))
		}
	}
}

// A fast command in a pipeline counts with the mean time of its batch, a slow one and one in EXEC with its own.
func TestLatencyStats(t *testing.T) {
	w := newWorld(t)
	for name, took := range map[string]int64{"fast": 3, "slow": 50} {
		row := &command.Row{Name: name, Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(took); s.replyOK() })}
		if name == "fast" {
			row.Flags = command.Fast
		}
		w.commands.Rows = append(w.commands.Rows, row)
		w.commands.Add(row)
	}
	c := w.connect()
	c.send("FAST\r\nPING\r\nPING\r\nSLOW\r\n") // 3 ms for three fast ones
	c.send("MULTI\r\nFAST\r\nEXEC\r\n")
	info := c.do("INFO", "latencystats")
	for _, line := range []string{
		"latency_percentiles_usec_fast:p50=1003.519,p99=3014.655,p99.9=3014.655\r\n", // 1 ms and 3 ms
		"latency_percentiles_usec_ping:p50=1003.519,p99=1003.519,p99.9=1003.519\r\n",
		"latency_percentiles_usec_slow:p50=50069.503,p99=50069.503,p99.9=50069.503\r\n",
		"latency_percentiles_usec_exec:p50=3014.655,p99=3014.655,p99.9=3014.655\r\n",
	} {
		if !strings.Contains(info, line) {
			t.Errorf("no line %q in %q", line, info)
		}
	}
	info = c.do("INFO", "commandstats")
	for _, line := range []string{
		"cmdstat_fast:calls=2,usec=4000,usec_per_call=2000.00,", "cmdstat_ping:calls=2,usec=2000,usec_per_call=1000.00,",
		"cmdstat_slow:calls=1,usec=50000,usec_per_call=50000.00,", "cmdstat_exec:calls=1,usec=3000,usec_per_call=3000.00,",
	} {
		if !strings.Contains(info, line) {
			t.Errorf("no line %q in %q", line, info)
		}
	}
	c.want("LATENCY HISTOGRAM ping slow nosuch", "*4\r\n$4\r\nping\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*2\r\n:1056\r\n:2\r\n"+
		"$4\r\nslow\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:67633\r\n:1\r\n")
	c.do("CONFIG", "RESETSTAT")
	if info := c.do("INFO", "latencystats"); strings.Contains(info, "fast") || strings.Contains(info, "ping") {
		t.Errorf("after CONFIG RESETSTAT: %q", info)
	}
}
