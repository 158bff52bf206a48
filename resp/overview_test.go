package resp

import (
	"testing"

	"celld/cell"
	"celld/resp/decisions"
	"celld/store"
)

// The policies that decide most are kept.
func TestOverviewPolicies(t *testing.T) {
	counts := []decisions.LimitCounts{{Policy: "unused"}}
	for i := range 60 {
		counts = append(counts, decisions.LimitCounts{Policy: string(rune('A' + i)), Algorithm: cell.GCRA,
			Counts: decisions.Counts{decisions.TakeAllowed: int64(i), decisions.ThrottleLimited: 1}})
	}
	v := &Overview{}
	v.policies(counts)
	if len(v.Policies) != overviewPolicies || v.Others != 10 || v.Policies[0].Allowed != 59 || v.Policies[49].Allowed != 10 {
		t.Errorf("%+v", v)
	}
}

// Calls that were answered with an error are not among those that were decided.
func TestOverviewOfAnEngineThatDoesNotAnswer(t *testing.T) {
	w, _ := engineWorld(t, false)
	w.sessions.Stats.Engine = func() store.Counts { return store.Counts{DecidedWithout: 2, Refused: 5} }
	if e := w.Overview().Engine; e.Without != 2 || e.Refused != 5 {
		t.Errorf("%+v", e)
	}
}
