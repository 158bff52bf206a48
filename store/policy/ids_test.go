package policy_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"celld/cell"
	"celld/store/policy"
)

// saved is the ID that a file would have, 0 for none.
func saved(t *testing.T, s *policy.Set) uint64 {
	t.Helper()
	names := s.Settings(policy.IDSetting)
	text, ok := s.SettingText(policy.Setting{Kind: policy.IDSetting, Name: "id"}, 0)
	if ok != slices.Equal(names, []string{"id"}) || ok == (len(names) == 0) {
		t.Errorf("the settings are %q, and the text of the ID %q, %v", names, text, ok)
	}
	if !ok {
		return 0
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		t.Errorf("saved is %q, %v", text, err)
	}
	return id
}

// IDs grow with the clock, and when it is set back. A file has one that is 10 s ahead, so that few are written.
func TestIDs(t *testing.T) {
	s := &policy.Set{Journal: true}
	if s.LastID() != 0 || saved(t, s) != 0 {
		t.Errorf("at first: %d, saved %d", s.LastID(), saved(t, s))
	}
	next := func(us int64, want uint64, wantSaved uint64, changes int64) {
		t.Helper()
		if id := s.NextID(us); id != want || s.LastID() != want || saved(t, s) != wantSaved || s.SettingChanges() != changes {
			t.Errorf("at %d: %d, last %d, saved %d, %d changes; want %d, saved %d, %d changes", us, id, s.LastID(), saved(t, s),
				s.SettingChanges(), want, wantSaved, changes)
		}
	}
	next(-5, 1, 10_000_001, 1)
	next(0, 2, 10_000_001, 1)
	next(1000, 1000, 10_000_001, 1)
	next(999, 1001, 10_000_001, 1)
	next(10_000_001, 10_000_001, 10_000_001, 1)
	next(10_000_002, 10_000_002, 20_000_002, 2)
	raise := func(id, want, wantSaved uint64, changes int64) {
		t.Helper()
		if s.RaiseID(id); s.LastID() != want || saved(t, s) != wantSaved || s.SettingChanges() != changes {
			t.Errorf("raised to %d: last %d, saved %d, %d changes; want %d, saved %d, %d changes", id, s.LastID(), saved(t, s),
				s.SettingChanges(), want, wantSaved, changes)
		}
	}
	raise(5, 10_000_002, 20_000_002, 2)
	raise(10_000_003, 10_000_003, 20_000_002, 2)
	raise(20_000_002, 20_000_002, 20_000_002, 2)
	raise(20_000_003, 20_000_003, 20_000_003, 3)
	raise(policy.MostID+1, 20_000_003, 20_000_003, 3)
	raise(policy.MostID, policy.MostID, policy.MostID, 4)
	next(5, policy.MostID+1, policy.MostID+1+10_000_000, 5)
	var drained []policy.Change
	if lost := s.DrainSettings(func(c policy.Change) { drained = append(drained, c) }); lost || fmt.Sprint(drained) != "[{{2 id} false }]" {
		t.Errorf("drained %v, lost %v", drained, lost)
	}
	s.DeleteSetting(policy.Setting{Kind: policy.IDSetting, Name: "id"}, 0)
	if s.LastID() != policy.MostID+1 {
		t.Error("the last ID is deleted")
	}
	for range 100 { // all of these hold a lock only for a moment
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				s.NextID(0)
				s.RaiseID(5)
				s.LastID()
				s.Settings(policy.IDSetting)
			})
		}
		all.Wait()
	}
	if s.LastID() != policy.MostID+401 {
		t.Errorf("after 400 more: %d", s.LastID())
	}
}

// Several processes never give the same ID.
func TestIDsOfProcesses(t *testing.T) {
	for _, test := range []struct {
		us                 int64
		process, processes uint64
		want               uint64
	}{{100, 0, 4, 100}, {100, 3, 4, 103}, {101, 1, 4, 101}, {101, 0, 4, 104}, {103, 2, 4, 106}, {7, 0, 1, 7}} {
		s := &policy.Set{}
		if got := s.NextIDOf(test.us, test.process, test.processes); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// A setting of a file may be wrong, and then nothing changes.
func TestWrongSettings(t *testing.T) {
	s := &policy.Set{Journal: true}
	for _, test := range []struct {
		kind       policy.Kind
		name, text string
	}{
		{policy.PolicySetting, "p", "x"}, {policy.IDSetting, "id", "x"}, {policy.IDSetting, "id", "-1"}, {policy.RuleSetting, "x", "0"},
		{policy.RuleSetting, "DENY k", "0"}, {policy.RuleSetting, "MAYBE - k", "0"}, {policy.RuleSetting, "DENY 10.0.0.0 k", "0"},
		{policy.RuleSetting, "DENY - k", "x"}, {policy.RuleSetting, "DENY - k", "-1"}, {policy.RuleSetting, "DENY - k", "9223372036855"},
		{policy.SettingKinds, "x", "0"},
	} {
		if err := s.PutSetting(policy.Setting{Kind: test.kind, Name: test.name}, test.text, t0, 0); err == nil {
			t.Errorf("%+v is no error", test)
		}
	}
	s.DeleteSetting(policy.Setting{Kind: policy.RuleSetting, Name: "x"}, t0)
	if n := s.SettingChanges(); n != 0 || len(s.Policies()) != 0 || s.HasRules() || s.LastID() != 0 {
		t.Errorf("%d changes", n)
	}
	if err := s.PutSetting(policy.Setting{Kind: policy.IDSetting, Name: "id"}, "77", t0, 0); err != nil || s.LastID() != 77 {
		t.Errorf("ID %d, %v", s.LastID(), err)
	}
	if err := s.PutSetting(policy.Setting{Kind: policy.PolicySetting, Name: "p"}, "5/1h", t0, 0); err != nil ||
		s.PolicyNamed("p").Limits[0].Limit.String() != "5/1h" {
		t.Error(err)
	}
	s.DeleteSetting(policy.Setting{Kind: policy.PolicySetting, Name: "p"}, t0)
	if _, ok := s.SettingText(policy.Setting{Kind: policy.PolicySetting, Name: "p"}, 0); ok || s.PolicyNamed("p") != nil {
		t.Error("a deleted policy is there")
	}
}

// Who waits is told of each change, when it is made.
func TestChangesAreTold(t *testing.T) {
	told := 0
	s := &policy.Set{}
	s.Changed = func() {
		told++
		s.Policies() // no lock is held
		s.Rules(t0)
	}
	limit := mustParse(t, "5/1h")
	for i, change := range []func(){
		func() { s.SetPolicy("p", []cell.Limit{limit}, policy.Options{}) },
		func() { s.DeletePolicy("p") },
		func() { s.PutRule(policy.Rule{Pattern: "k"}, t0) },
		func() { s.DeleteRule(policy.Rule{Pattern: "k"}, t0) },
	} {
		if change(); told != i+1 {
			t.Fatalf("after change %d, told %d times", i, told)
		}
	}
}

// NX and XX say when a policy is set. It keeps its ID unless it is reset.
func TestSetPolicy(t *testing.T) {
	s := &policy.Set{}
	five, six := mustParse(t, "5/1h"), mustParse(t, "6/1h")
	for i, test := range []struct {
		o       policy.Options
		set     bool
		limit   string
		id      uint32
		lost    uint64
		version uint64
	}{
		{policy.Options{IfThere: true}, false, "", 0, 0, 0}, {policy.Options{IfAbsent: true}, true, "5/1h", 1, 0, 1},
		{policy.Options{IfAbsent: true}, false, "5/1h", 1, 0, 1}, {policy.Options{IfThere: true}, true, "6/1h", 1, 0, 2},
		{policy.Options{Reset: true}, true, "5/1h", 2, 1, 3},
	} {
		limit := five
		if test.limit == "6/1h" {
			limit = six
		}
		set, err := s.SetPolicy("p", []cell.Limit{limit}, test.o)
		if err != nil || set != test.set || s.LimitsRemoved() != test.lost || s.PoliciesVersion() != test.version {
			t.Errorf("%d: %v, %v, %d lost, version %d", i, set, err, s.LimitsRemoved(), s.PoliciesVersion())
		}
		p := s.Policy([]byte("p"))
		if (p != nil) != (test.limit != "") || p != s.PolicyNamed("p") || p != nil &&
			(p.String() != test.limit || p.Limits[0].ID != test.id || s.LimitOf(test.id) != p.Limits[0]) {
			t.Errorf("%d: %+v", i, p)
		}
	}
	if s.LimitOf(1) != nil || s.LimitOf(9) != nil {
		t.Error("a reset policy is there under its old ID")
	}
	if was := s.DeletePolicy("p"); !was || s.DeletePolicy("p") || s.LimitsRemoved() != 2 || s.LimitOf(2) != nil {
		t.Error("deleting")
	}
	for i := range policy.MaxPolicies {
		s.SetPolicy(fmt.Sprint(i), []cell.Limit{five}, policy.Options{})
	}
	if set, err := s.SetPolicy("more", []cell.Limit{five}, policy.Options{}); set || err != policy.ErrTooMany {
		t.Errorf("one more than the most: %v, %v", set, err)
	}
	if set, err := s.SetPolicy("0", []cell.Limit{six}, policy.Options{}); !set || err != nil {
		t.Errorf("one of the most: %v, %v", set, err)
	}
	if list := s.Policies(); len(list) != policy.MaxPolicies || list[1].Name != "1" || list[2].Name != "10" {
		t.Errorf("%d policies", len(list))
	}
}
