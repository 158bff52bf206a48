//go:build linux

package main

import (
	"maps"
	"strings"
	"testing"
)

const benchmarked = `goos: linux
pkg: celld/store
BenchmarkScale/throttle/keys=1000/denied/one-2         	 5000000	        40.00 ns/op	       0 B/op	       0 allocs/op
BenchmarkScale/throttle/keys=1000/denied/two-2         	 5000000	        25.0 ns/op
BenchmarkScale/throttle/keys=1000/denied/ceiling-16    	 5000000	        20 ns/op	       0 B/op
PASS
`

func TestParseBenchmarks(t *testing.T) {
	all := sample{oneNS: 40, twoNS: 25, ceilingNS: 20, shareOfCeiling: 0.8, twoOverOne: 1.6}
	for _, test := range []struct {
		name, text string
		want       sample // nil: an error
	}{
		{"two processors and more", benchmarked, all},
		{"one processor", strings.NewReplacer("-2", "", "-16", "").Replace(benchmarked), all},
		{"one key", strings.Replace(benchmarked, "ceiling", "CEILING", 1), sample{oneNS: 40, twoNS: 25, twoOverOne: 1.6}},
		{"new keys", strings.NewReplacer("two", "growing", "ceiling", "flood").Replace(benchmarked),
			sample{oneNS: 40, growingNS: 25, floodNS: 20, growingOverHit: 0.625, floodOverHit: 0.5}},
		{"one figure twice", strings.Replace(benchmarked, "two", "one", 1), nil},
		{"nothing to compare with", strings.Replace(benchmarked, "one", "three", 1), nil},
		{"one alone", strings.NewReplacer("two", "TWO", "ceiling", "CEILING").Replace(benchmarked), nil},
		{"no time", strings.Replace(benchmarked, "40.00", "0.0", 1), nil},
		{"no row matches", "PASS\n", nil},
	} {
		got, err := parseBenchmarks(test.text)
		if (err != nil) != (test.want == nil) || !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
}
