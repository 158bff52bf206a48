package resp

import (
	"testing"

	"celld/cell"
	"celld/resp/decisions"
	"celld/store"
	"celld/store/policy"
)

// The policies that decide most are kept.
func TestOverviewPolicies(t *testing.T) {
	counts := []decisions.LimitCounts{{Policy: "unused"}}
	for i := range 60 {
		counts = append(counts, decisions.LimitCounts{Policy: string(rune('A' + i)), Algorithm: cell.GCRA,
			Counts: decisions.Counts{decisions.TakeAllowed: int64(i), decisions.ThrottleLimited: 1}})
	}
	v := &Overview{}
	limit, _ := cell.ParseLimit("5/1m")
	v.policies(append(counts, decisions.LimitCounts{Counts: decisions.Counts{decisions.TakeAllowed: 99}}),
		func(name string) *policy.Policy { return map[string]*policy.Policy{"j": policy.New("j", limit)}[name] })
	if p := v.Policies[0]; p.Policy != "literals" || p.Limits != "" {
		t.Errorf("%+v", p)
	}
	if p := v.Policies[19]; p.Policy != "j" || p.Limits != "5/1m" {
		t.Errorf("%+v", p)
	}
	v.Policies = v.Policies[1:]
	if len(v.Policies) != overviewPolicies-1 || v.Others != 11 || v.Policies[0].Allowed != 59 || v.Policies[48].Allowed != 11 {
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
