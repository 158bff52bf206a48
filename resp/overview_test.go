package resp

import (
	"slices"
	"testing"

	"celld/cell"
	"celld/store/remote"
)

// Each command counts in the step that it took.
func TestOverviewLatency(t *testing.T) {
	var all times
	for _, ns := range []int64{1, 1023, 1024, 2047, 2048, 5_000_000, 999_999_999, 60_000_000_000} {
		all.add(ns, 1)
	}
	var r timesRead
	all.read(&r)
	l := r.latency()
	want := make([]int64, 21)
	want[0], want[1], want[2], want[13], want[20] = 2, 2, 1, 1, 2
	if !slices.Equal(l.Calls, want) || l.MostNS[13] != 1024<<13 || len(l.MostNS) != 21 {
		t.Errorf("%v in %v, want %v", l.Calls, l.MostNS, want)
	}
}

// The policies that decide most are kept.
func TestOverviewPolicies(t *testing.T) {
	counts := []policyDecisions{{policy: "unused"}}
	for i := range 60 {
		counts = append(counts, policyDecisions{string(rune('A' + i)), cell.GCRA, decisions{takeAllowed: int64(i), throttleLimited: 1}})
	}
	v := &Overview{}
	v.policies(counts)
	if len(v.Policies) != overviewPolicies || v.Others != 10 || v.Policies[0].Allowed != 59 || v.Policies[49].Allowed != 10 {
		t.Errorf("%+v", v)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"user:42": "user:42", "é√日": "é√日", "": "", `"a" 'b'`: `"a" 'b'`, `\x00`: `\\x00`, "\x00\n\xff": `\x00\n\xff`, "a\u202eb\u200d": `a\u202eb\u200d`, "\"\\\"": `"\\"`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Calls that were answered with an error are not among those that were decided.
func TestOverviewOfAnEngineThatDoesNotAnswer(t *testing.T) {
	w, _ := engineWorld(t, false)
	w.stats.engine = &remote.Stats{}
	w.stats.engine.DecidedWithout.Add(2)
	w.stats.engine.Refused.Add(5)
	if e := w.Overview().Engine; e.Without != 2 || e.Refused != 5 {
		t.Errorf("%+v", e)
	}
}
