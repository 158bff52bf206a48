package decide

import (
	"strings"
	"testing"

	"celld/cell"
	"celld/resp/decisions"
	"celld/store"
	"celld/store/policy"
)

// decided is what a policy has counted since the last look, and how often each of its limits has bound.
func (w *world) decided(name string) (n decisions.Counts, bound []decisions.Bound) {
	w.d.Decided.Settle(0, nil)
	n, bound = w.server.Counts.SinceReset(name)
	return n, bound
}

// A call counts once for each policy that it names: as limited for the one that binds, and as limited by another for the others.
func TestPlansAreCounted(t *testing.T) {
	w := newWorld(t)
	w.want("CL.POLICY SET gold 9/1m 2/1d", ":1\r\n")
	w.want("CL.POLICY SET api 5/1h", ":1\r\n")
	if _, err := w.Store.PutRule(policy.Rule{Deny: true, Pattern: "bad"}, 0); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		call           string
		limited        bool
		gold, api, lit decisions.Counts
		bound          [3]int64 // of gold's limits, and of api's
	}{
		{call: "CL.TAKE a @gold", gold: decisions.Counts{decisions.TakeAllowed: 1}},
		{call: "CL.TAKE b @api @gold", gold: decisions.Counts{decisions.TakeAllowed: 1}, api: decisions.Counts{decisions.AlsoAllowed: 1}},
		{call: "CL.TAKE b @gold @gold @api COST 9", limited: true, gold: decisions.Counts{decisions.TakeLimited: 1},
			api: decisions.Counts{decisions.LimitedByOther: 1}, bound: [3]int64{0, 1, 0}},
		{call: "CL.TAKE c @api:x 1/1m", api: decisions.Counts{decisions.AlsoAllowed: 1}, lit: decisions.Counts{decisions.TakeAllowed: 1}},
		{call: "CL.TAKE c @api @gold 1/1m", limited: true, lit: decisions.Counts{decisions.TakeLimited: 1},
			gold: decisions.Counts{decisions.LimitedByOther: 1}, api: decisions.Counts{decisions.LimitedByOther: 1}},
		{call: "CL.MTAKE 2 d @gold e @api COST 6", limited: true, gold: decisions.Counts{decisions.TakeLimited: 1},
			api: decisions.Counts{decisions.LimitedByOther: 1}, bound: [3]int64{0, 1, 0}},
		{call: "CL.TAKE f @api @gold COST 2 PEEK"},
		{call: "CL.TAKE g @gold @api COST 5 UPTO", gold: decisions.Counts{decisions.TakeAllowed: 1, decisions.PartlyGranted: 1},
			api: decisions.Counts{decisions.AlsoAllowed: 1, decisions.PartlyGranted: 1}},
		{call: "CL.TAKE bad @api @gold", limited: true, api: decisions.Counts{decisions.TakeLimited: 1, decisions.RuleDenied: 1},
			gold: decisions.Counts{decisions.LimitedByOther: 1, decisions.AlsoRuleDenied: 1}},
		{call: "CL.MTAKE 2 h @gold bad @api", limited: true, api: decisions.Counts{decisions.TakeLimited: 1, decisions.RuleDenied: 1},
			gold: decisions.Counts{decisions.LimitedByOther: 1, decisions.AlsoRuleDenied: 1}},
		{call: "CL.TAKE bad 1/1m @gold", limited: true, lit: decisions.Counts{decisions.TakeLimited: 1, decisions.RuleDenied: 1},
			gold: decisions.Counts{decisions.LimitedByOther: 1, decisions.AlsoRuleDenied: 1}},
	} {
		w.server.Counts.Reset()
		got := w.do(strings.Fields(test.call)...)
		gold, goldBound := w.decided("gold")
		api, apiBound := w.decided("api")
		lit := w.server.Counts.LiteralsSinceReset()
		if gold != test.gold || api != test.api || lit != test.lit {
			t.Errorf("%s: gold %v, api %v, literals %v", test.call, gold, api, lit)
		}
		bound := [3]int64{}
		for i, b := range append(goldBound, apiBound...) {
			bound[i] = b.Calls
		}
		if bound != test.bound || strings.HasPrefix(got, "*7\r\n:1") != test.limited && test.call[3] == 'T' {
			t.Errorf("%s: %q, bound %v", test.call, got, bound)
		}
	}
}

// A call whose policies got other limits while it waited is counted by the limits that it was decided by.
func TestPlansThatChangeAreCounted(t *testing.T) {
	w := newWorld(t)
	w.want("CL.POLICY SET gold 9/1m 2/1d", ":1\r\n")
	f, text := w.shapeOf("@gold")
	if text != "" {
		t.Fatal(text)
	}
	w.want("CL.POLICY SET gold 2/1d 7/1s 9/1m,algo=log", ":1\r\n")
	var calls []store.Call
	for _, l := range w.Store.PolicyNamed("gold").Limits {
		calls = append(calls, store.CallOf([]byte("k"), l))
	}
	literal, _ := cell.ParseLimit("3/1m")
	calls = append(calls, store.Call{Key: []byte("k"), Limit: &literal})
	for i := range calls {
		calls[i].Decision.Limit = calls[i].Limit.Capacity() // else a rule has denied it
	}
	r := &store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: 1}, Taken: store.Taken{Limited: true, Binding: 2}}
	w.d.count(true, f, r)
	n, bound := w.decided("gold")
	want := decisions.Bound{Limit: "log/1m", Calls: 1}
	if n != (decisions.Counts{decisions.TakeLimited: 1}) || bound[len(bound)-1] != want {
		t.Errorf("%v, %v", n, bound)
	}
}

// CL.THROTTLE takes a policy of one limit, and CL.GIVE gives back to each limit of a policy and answers the most.
func TestCommandsOnPlans(t *testing.T) {
	w := newWorld(t)
	w.want("CL.POLICY SET gold 9/1m,algo=window 9/1d,algo=log 9/1h,algo=conc", ":1\r\n")
	w.want("CL.THROTTLE k @gold", "-ERR policy 'gold' has several limits: use CL.TAKE\r\n")
	w.do("CL.TAKE", "k", "@gold", "COST", "5")
	w.do("CL.GIVE", "k", "9/1d,algo=log", "1") // of a literal's state, which is another
	w.want("CL.GIVE k @gold 3", ":3\r\n")
	w.sleep(60e9)
	w.want("CL.GIVE k @gold 9", ":2\r\n") // the window has ended
	w.want("CL.GIVE k @gold 9", ":0\r\n")
	w.want("CL.POLICY SET gold 9/1h,algo=conc 9/1d,algo=log", ":1\r\n")
	w.do("CL.TAKE", "k", "@gold", "COST", "5")
	w.sleep(3600e9)
	w.want("CL.GIVE k @gold 9", ":5\r\n") // the lease has ended
}
