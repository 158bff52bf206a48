package resp

import (
	"testing"

	"celld/cell"
	"celld/store/remote"
)

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
	w.stats.Engine = &remote.Stats{}
	w.stats.Engine.DecidedWithout.Add(2)
	w.stats.Engine.Refused.Add(5)
	if e := w.Overview().Engine; e.Without != 2 || e.Refused != 5 {
		t.Errorf("%+v", e)
	}
}
