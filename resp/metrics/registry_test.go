package metrics

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// example returns a metric of each kind of value.
func example(n *int64, held *Histogram) *Registry {
	return New(
		Section{Name: "One", Counts: true, ByDefault: true, Read: func(l *List) {
			l.Counter(Metric{Field: "calls", Name: "calls_total", JSON: "calls", Value: *n})
			l.Counter(Metric{Field: "saves", Value: *n, Lasts: true})
			l.Gauge(Metric{Field: "open", JSON: "calls", Value: 4})
			l.Gauge(Metric{Field: "version", JSON: "inner.version", Value: "1.2"})
			l.Gauge(Metric{Field: "status", Name: "failed", JSON: "inner.failed", Value: Failed(*n > 10)})
			l.Gauge(Metric{Field: "since", Name: "since_seconds", JSON: "inner.since", Value: time.Unix(20, 500e6)})
			l.Gauge(Metric{Field: "never", Name: "never_seconds", JSON: "inner.never", Value: time.Time{}})
			l.Gauge(Metric{Field: "took", Name: "took_seconds", JSON: "inner.took", Value: 1500 * time.Millisecond})
			l.Field("none", time.Duration(-1))
			l.InfoOnly = true
			l.Gauge(Metric{Field: "on", Name: "on", JSON: "away.on", Value: true})
		}},
		Section{Name: "Two", Read: func(l *List) {
			l.Field("now", l.NowNS)
			l.Histogram(Metric{Name: "waits", JSON: "waits", Value: held})
			l.Gauge(Metric{Name: "off", JSON: "away.off", Value: false})
		}},
		Section{Name: "Three", ByDefault: true, Read: func(l *List) { l.Field("off", false) }},
	)
}

func TestInfo(t *testing.T) {
	n := int64(7)
	r := example(&n, &Histogram{})
	const rest = "open:4\r\nversion:1.2\r\nstatus:ok\r\nsince:20\r\nnever:0\r\ntook:1\r\nnone:-1\r\non:1\r\n"
	const one, two, three = "# One\r\ncalls:7\r\nsaves:7\r\n" + rest, "# Two\r\nnow:5\r\n", "# Three\r\noff:0\r\n"
	for _, test := range []struct {
		want  string
		words []string
	}{
		{one + "\r\n" + three, nil},
		{one + "\r\n" + three, []string{"default"}},
		{one + "\r\n" + two + "\r\n" + three, []string{"all"}},
		{one + "\r\n" + two + "\r\n" + three, []string{"two", "default"}},
		{one + "\r\n" + two + "\r\n" + three, []string{"everything"}},
		{two, []string{"two"}},
		{two + "\r\n" + three, []string{"three", "none", "two"}},
		{"", []string{"none"}},
	} {
		if got := r.Info(5, test.words...); got != test.want {
			t.Errorf("%q: %q, want %q", test.words, got, test.want)
		}
	}
	r.Reset(5)
	n = 12
	got, want := r.Info(5, "one"),
		"# One\r\ncalls:5\r\nsaves:12\r\nopen:4\r\nversion:1.2\r\nstatus:err\r\n"+rest[len("open:4\r\nversion:1.2\r\nstatus:ok\r\n"):]
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if all := r.Read(5); all[0].Value != int64(12) {
		t.Errorf("a reset has changed %+v", all[0])
	}
}

func TestNumbersForPrometheus(t *testing.T) {
	n := int64(12)
	others := func(l *List) { l.Counter(Metric{Name: "others_total", Value: uint64(3)}) }
	got := map[string]float64{}
	for _, m := range example(&n, &Histogram{}).Read(5, others) {
		if m.Name != "" {
			got[m.Name] = m.number()
		}
	}
	for name, want := range map[string]float64{
		"calls_total": 12, "failed": 1, "since_seconds": 20.5, "never_seconds": 0, "took_seconds": 1.5, "off": 0, "waits": 0,
		"others_total": 3,
	} {
		if value, found := got[name]; !found || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
		delete(got, name)
	}
	if len(got) > 0 { // on is for INFO only
		t.Errorf("more: %v", got)
	}
}

// Fields of a missing object are left out, and metrics of one name are added up.
func TestFill(t *testing.T) {
	type inner struct {
		Version string `json:"version"`
		Failed  bool   `json:"failed"`
		Since   int64  `json:"since"`
		Never   int64  `json:"never"`
		Took    int64  `json:"took"`
	}
	type page struct {
		Calls int64            `json:"calls"`
		Waits int64            `json:"waits"`
		Inner inner            `json:"inner"`
		Away  *struct{ X int } `json:"away"`
	}
	n, p := int64(12), page{}
	Fill(&p, slices.Concat(example(&n, &Histogram{Count: 9}).Read(5), []Metric{{JSON: "unknown.name", Value: 1}}))
	got, _ := json.Marshal(p)
	if string(got) != `{"calls":16,"waits":9,"inner":{"version":"1.2","failed":true,"since":20500,"never":0,"took":1500},"away":null}` {
		t.Errorf("%s", got)
	}
}
