package metrics

import (
	"strings"
	"testing"
)

// Lines of the text format stand in groups of one name, with help and kind first. Labels are sorted, and what is special is escaped.
func TestAppendText(t *testing.T) {
	got := string(AppendText([]byte("x\n"), []Metric{
		{Name: "b_total", Help: "B.", Kind: "counter", Labels: []string{"y", "1", "x", "a\"\\\n{ü"}, Value: 10_000_000},
		{Name: "a", Help: "One\\two\nthree.", Kind: "gauge", Value: 0.125},
		{Name: "h", Help: "H.", Kind: "histogram", Labels: []string{"z", ""}, Value: &Histogram{MostNS: []int64{1_024, 2_000_000_000}, Below: []uint64{1, 3}, Count: 4, SumNS: 2_500_000_000}},
		{Name: "b_total", Help: "B.", Kind: "counter", Labels: []string{"y", "2", "x", ""}, Value: 1 << 60},
		{Name: "h", Help: "H.", Kind: "histogram", Labels: []string{"z", "0"}, Value: &Histogram{}},
	}))
	want := strings.Join([]string{
		`x`,
		`# HELP a One\\two\nthree.`, `# TYPE a gauge`, `a 0.125`,
		`# HELP b_total B.`, `# TYPE b_total counter`, `b_total{x="a\"\\\n{ü",y="1"} 10000000`, `b_total{x="",y="2"} 1.152921504606847e+18`,
		`# HELP h H.`, `# TYPE h histogram`, `h_bucket{le="1.024e-06",z=""} 1`, `h_bucket{le="2",z=""} 3`, `h_bucket{le="+Inf",z=""} 4`,
		`h_sum{z=""} 2.5`, `h_count{z=""} 4`, `h_bucket{le="+Inf",z="0"} 0`, `h_sum{z="0"} 0`, `h_count{z="0"} 0`, "",
	}, "\n")
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
