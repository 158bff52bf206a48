package policy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/store/policy"

	"pgregory.net/rapid"
)

const (
	t0     = int64(1_700_000_000_000_000_000)
	second = int64(time.Second)
)

func mustParse(tb testing.TB, text string) cell.Limit {
	tb.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// holds says by a rule's definition whether it holds for a key.
func holds(r *policy.Rule, key string, nowNS int64) bool {
	if r.UntilNS != 0 && r.UntilNS <= nowNS {
		return false
	}
	if r.Net.IsValid() {
		rest, found := strings.CutPrefix(key, r.Pattern)
		addr, err := netip.ParseAddr(rest)
		if !found || err != nil || addr.Zone() != "" {
			return false
		}
		net := r.Net
		if net.Addr().Is4In6() && net.Bits() >= 96 {
			net = netip.PrefixFrom(net.Addr().Unmap(), net.Bits()-96)
		}
		return net.Contains(addr.Unmap())
	}
	if prefix, found := strings.CutSuffix(r.Pattern, "*"); found {
		return strings.HasPrefix(key, prefix)
	}
	return key == r.Pattern
}

var (
	rulePatterns = []string{"", "*", "a", "a*", "ab", "ab*", "a**", "ip:", "ip:*", "ip:10.0.0.1", "x"}
	ruleNets     = []string{"", "", "", "10.0.0.0/8", "10.0.0.1/32", "10.0.0.77/24", "0.0.0.0/0", "::/0", "2001:db8::/32",
		"2001:db8::1/128", "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/90", "::ffff:0.0.0.0/96"}
	ruleKeys = []string{"", "a", "ab", "abc", "a*", "x", "ip:", "ip:10.0.0.1", "ip:10.0.0.2", "ip:10.1.0.1", "ip:11.0.0.1",
		"ip:::ffff:10.0.0.1",
		"ip:2001:db8::1", "ip:2001:0db8:0000:0000:0000:0000:0000:0002", "ip:fe80::1%eth0", "ip:10.0.0.1x", "ip:010.0.0.1",
		"10.0.0.1", "::1", "ip:0000:0000:0000:0000:0000:ffff:255.255.255.255"}
)

// Rules are as if all of them were looked at, those that deny first.
func TestRulesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policy.Set{Journal: true}
		var list []policy.Rule
		now := t0
		draw := func(t *rapid.T) policy.Rule {
			r := policy.Rule{Deny: rapid.Bool().Draw(t, "deny"), Pattern: rapid.SampledFrom(rulePatterns).Draw(t, "pattern")}
			if net := rapid.SampledFrom(ruleNets).Draw(t, "net"); net != "" {
				r.Net = netip.MustParsePrefix(net)
			}
			return r
		}
		same := func(r policy.Rule) func(policy.Rule) bool {
			return func(of policy.Rule) bool {
				masked := func(net netip.Prefix) netip.Prefix {
					if net.IsValid() && net.Addr().Is4In6() && net.Bits() >= 96 {
						net = netip.PrefixFrom(net.Addr().Unmap(), net.Bits()-96)
					}
					return net.Masked()
				}
				return of.Deny == r.Deny && of.Pattern == r.Pattern && masked(of.Net) == masked(r.Net)
			}
		}
		live := func(r policy.Rule) bool { return r.UntilNS == 0 || r.UntilNS > now }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r := draw(t)
				r.UntilNS = rapid.SampledFrom([]int64{0, 0, now + second/1000, now + second}).Draw(t, "until")
				at := slices.IndexFunc(list, same(r))
				added, err := s.PutRule(r, now)
				if err != nil || added != (at < 0 || !live(list[at])) {
					t.Fatalf("put %+v: %v, %v", r, added, err)
				}
				list = append(slices.DeleteFunc(list, same(r)), r)
			},
			"delete": func(t *rapid.T) {
				r := draw(t)
				at := slices.IndexFunc(list, same(r))
				if got, want := s.DeleteRule(r, now), at >= 0 && live(list[at]); got != want {
					t.Fatalf("delete %+v: %v", r, got)
				}
				list = slices.DeleteFunc(list, same(r))
			},
			"sweep": func(t *rapid.T) {
				s.SweepRules(now)
				ended := func(r policy.Rule) bool { return r.UntilNS != 0 && r.UntilNS <= now-10*second }
				list = slices.DeleteFunc(list, ended)
				if got := len(s.Settings(policy.RuleSetting)); got > len(list) || s.RulesDue(now) {
					t.Fatalf("%d rules are kept of %+v", got, list)
				}
			},
			"pass": func(t *rapid.T) {
				now += rapid.SampledFrom([]int64{second / 1000, second / 2, 11 * second}).Draw(t, "ns")
			},
			"file": func(t *rapid.T) { // all of them through their texts
				next, ahead := policy.Set{}, rapid.SampledFrom([]int64{0, 3600 * second, -3600 * second}).Draw(t, "ahead")
				for _, name := range s.Settings(policy.RuleSetting) {
					setting := policy.Setting{Kind: policy.RuleSetting, Name: name}
					text, ok := s.SettingText(setting, ahead)
					if err := next.PutSetting(setting, text, now, ahead); err != nil || !ok {
						t.Fatalf("%q %q: %v", name, text, err)
					}
				}
				got, want := next.Rules(now), s.Rules(now)
				if !slices.Equal(got, want) {
					t.Fatalf("%+v became %+v", want, got)
				}
			},
			"": func(t *rapid.T) {
				if got, want := len(s.Rules(now)), len(slices.DeleteFunc(slices.Clone(list),
					func(r policy.Rule) bool { return !live(r) })); got != want {
					t.Fatalf("%d rules, want %d", got, want)
				}
				for _, key := range ruleKeys {
					want := "no rule"
					for _, r := range list {
						if holds(&r, key, now) && want != "denied" {
							want = map[bool]string{true: "denied", false: "allowed"}[r.Deny]
						}
					}
					got := "no rule"
					if r := s.Rule([]byte(key), nil, now); r != nil {
						d := r.Decision(5, now)
						if got = "allowed"; d.Limited {
							got = "denied"
						}
						if d.Limited != r.Deny || !r.Deny && d.Remaining != 5 ||
							r.Deny && r.UntilNS != 0 && int64(d.RetryAfterNS) != r.UntilNS-now {
							t.Fatalf("%+v says %+v", r, d)
						}
					}
					if got != want {
						t.Fatalf("%q: %s, want %s of %+v", key, got, want, list)
					}
				}
			},
		})
	})
}

// There are so many rules and policies and no more; rules that are over make room.
func TestMostSettings(t *testing.T) {
	s := policy.Set{Journal: true}
	limit := mustParse(t, "5/1m")
	for i := range policy.MaxRules {
		until := int64(0)
		if i%1000 == 0 {
			until = t0 + second
		}
		if added, err := s.PutRule(policy.Rule{Pattern: fmt.Sprint(i), UntilNS: until}, t0); !added || err != nil {
			t.Fatal(added, err)
		}
		if set, err := s.SetPolicy(fmt.Sprint(i), []cell.Limit{limit}, policy.Options{}); !set || err != nil {
			t.Fatal(set, err)
		}
	}
	if _, err := s.PutRule(policy.Rule{Pattern: "more"}, t0); err != policy.ErrTooMany {
		t.Error(err)
	}
	if _, err := s.SetPolicy("more", []cell.Limit{limit}, policy.Options{}); err != policy.ErrTooMany {
		t.Error(err)
	}
	if _, err := s.PutRule(policy.Rule{Pattern: "1"}, t0); err != nil {
		t.Error(err)
	}
	if _, err := s.SetPolicy("1", []cell.Limit{limit}, policy.Options{Reset: true}); err != nil {
		t.Error(err)
	}
	if _, err := s.PutRule(policy.Rule{Pattern: "more"}, t0+second); err != nil ||
		len(s.Rules(t0+second)) != policy.MaxRules-policy.MaxRules/1000 {
		t.Error(err, len(s.Rules(t0+second)))
	}
	changes := map[policy.Setting]bool{}
	if lost := s.DrainSettings(func(c policy.Change) { changes[c.Setting] = c.Renewed }); lost ||
		len(changes) != policy.MaxRules+policy.MaxPolicies+1 {
		t.Errorf("%d changes, lost: %v", len(changes), lost)
	}
	for setting, renewed := range changes {
		if renewed {
			t.Errorf("%+v is renewed, and was not told before", setting)
		}
	}
}

// A file hears of which limits of a policy what was used still counts.
func TestKeptLimits(t *testing.T) {
	s := policy.Set{Journal: true}
	for i, test := range []struct {
		limits  string
		reset   bool
		renewed bool
		kept    string
	}{
		{limits: "5/1m"},
		{limits: "5/1m 9/1h"},
		{limits: "6/60s,burst=2 9/1h"},
		{limits: "9/1h", renewed: true, kept: "9/1h"},
		{limits: "7/1h 5/1m"},
		{limits: "7/1h 5/1m,algo=log", renewed: true, kept: "7/1h"},
		{limits: "7/1h 5/1m,algo=log", reset: true, renewed: true},
		{limits: "7/1d", renewed: true},
	} {
		limits, err := policy.ParseLimits(test.limits)
		if err == nil {
			_, err = s.SetPolicy("p", limits, policy.Options{Reset: test.reset})
		}
		if err != nil {
			t.Fatal(err)
		}
		p := policy.Setting{Kind: policy.PolicySetting, Name: "p"}
		s.DrainSettings(func(c policy.Change) {
			if want := (policy.Change{Setting: p, Renewed: test.renewed, Kept: test.kept}); c != want {
				t.Errorf("%d: %+v, want %+v", i, c, want)
			}
		})
		text, _ := s.SettingText(p, 0)
		var read policy.Set
		if err := read.PutSetting(p, text, 0, 0); err != nil || !read.PolicyNamed("p").Same(s.PolicyNamed("p")) {
			t.Errorf("%q is read as %v, %v", text, read.PolicyNamed("p"), err)
		}
	}
	for _, wrong := range []string{"", "5/1m 6/60s", "5/1m,algo=window,align=clock 6/1m,algo=window", strings.Repeat("1/1s ", 17)} {
		limits, err := policy.ParseLimits(wrong)
		if err != nil {
			t.Fatal(err)
		}
		if set, err := s.SetPolicy("p", limits, policy.Options{}); set || err == nil {
			t.Errorf("%q is taken: %v", wrong, err)
		}
	}
}

// A client that adds and deletes names for ever fills no memory when nobody drains them. What is lost of it is told.
func TestSettingsAreNotNotedForEver(t *testing.T) {
	s := policy.Set{Journal: true}
	limit := mustParse(t, "5/1m")
	name := strings.Repeat("n", 1<<10)
	for i := range 40_000 {
		if _, err := s.SetPolicy(fmt.Sprint(name, i), []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		s.DeletePolicy(fmt.Sprint(name, i))
	}
	changes := 0
	lost := s.DrainSettings(func(policy.Change) { changes++ })
	if !lost || changes > 17_000 || changes < 10_000 {
		t.Errorf("%d changes, lost: %v", changes, lost)
	}
	s.DeletePolicy("none")
	if lost := s.DrainSettings(func(policy.Change) { t.Error("a change") }); lost {
		t.Error("lost again")
	}
	if len(s.Policies()) != 0 {
		t.Error("policies")
	}
}

// A name stands for its own policy or for that of what is before its last colon. An ID lasts as long as what was used counts.
func TestPolicies(t *testing.T) {
	var s policy.Set
	set := func(name, text string, o policy.Options) (*policy.Policy, bool) {
		t.Helper()
		done, err := s.SetPolicy(name, []cell.Limit{mustParse(t, text)}, o)
		if err != nil {
			t.Fatal(err)
		}
		return s.PolicyNamed(name), done
	}
	api, _ := set("api", "5/1m", policy.Options{})
	cust, _ := set("api:cust:1", "6/1m", policy.Options{})
	for name, want := range map[string]*policy.Policy{
		"api": api, "api:": api, "api:x": api, "api:cust": api, "api:cust:1": cust, "api:cust:1:x:y": cust, "api:cust:12": api, "ap": nil,
		"apis": nil, ":api": nil, "": nil,
	} {
		if got := s.Policy([]byte(name)); got != want {
			t.Errorf("%q is %+v, want %+v", name, got, want)
		}
	}
	version, ids := s.PoliciesVersion(), map[uint32]bool{api.Limits[0].ID: true, cust.Limits[0].ID: true, 0: true}
	if len(ids) != 3 {
		t.Errorf("%+v, %+v", api, cust)
	}
	if _, done := set("api", "7/1m", policy.Options{IfAbsent: true}); done || s.PoliciesVersion() != version {
		t.Error("a policy that is there was set with IfAbsent")
	}
	if p, done := set("new", "7/1m", policy.Options{IfThere: true}); done || p != nil {
		t.Error("a policy that is not there was set with IfThere")
	}
	changed, done := set("api", "7/1m", policy.Options{IfThere: true})
	if !done || changed.Limits[0].ID != api.Limits[0].ID ||
		s.LimitOf(api.Limits[0].ID) != changed.Limits[0] || s.LimitsRemoved() != 0 || s.PoliciesVersion() == version {
		t.Errorf("changed: %+v, %d IDs lost", changed, s.LimitsRemoved())
	}
	reset, _ := set("api", "7/1m", policy.Options{Reset: true})
	if ids[reset.Limits[0].ID] || s.LimitOf(api.Limits[0].ID) != nil || s.LimitsRemoved() != 1 {
		t.Errorf("reset: %+v, %d IDs lost", reset, s.LimitsRemoved())
	}
	ids[reset.Limits[0].ID] = true
	if !s.DeletePolicy("api") || s.DeletePolicy("api") || s.LimitOf(reset.Limits[0].ID) != nil || s.LimitsRemoved() != 2 {
		t.Errorf("deleted: %d IDs lost", s.LimitsRemoved())
	}
	if again, _ := set("api", "7/1m", policy.Options{}); ids[again.Limits[0].ID] {
		t.Errorf("set again: %+v", again)
	}
	var names []string
	for _, p := range s.Policies() {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"api", "api:cust:1"}) || !slices.Equal(s.Settings(policy.PolicySetting), names) {
		t.Errorf("%q, %q", names, s.Settings(policy.PolicySetting))
	}
}

// What is no setting of a file is refused, and changes nothing.
func TestPutSetting(t *testing.T) {
	var s policy.Set
	for _, bad := range [][2]string{{"", "0"}, {"MAYBE - a", "0"}, {"ALLOW -", "0"}, {"DENY net a", "0"}, {"DENY - a", ""},
		{"DENY - a", "-1"}, {"DENY - a", "9223372036855"}} {
		if err := s.PutSetting(policy.Setting{Kind: policy.RuleSetting, Name: bad[0]}, bad[1], t0, 0); err == nil {
			t.Errorf("%q %q is a rule", bad[0], bad[1])
		}
	}
	if err := s.PutSetting(policy.Setting{Kind: policy.PolicySetting, Name: "p"}, "5", t0, 0); err == nil {
		t.Error("5 is a limit")
	}
	if err := s.PutSetting(policy.Setting{Kind: policy.SettingKinds, Name: "p"}, "5/1m", t0, 0); err == nil {
		t.Error("an unknown kind is put")
	}
	if s.SettingChanges() != 0 || s.HasRules() {
		t.Errorf("%d changes", s.SettingChanges())
	}
	name := policy.Setting{Kind: policy.RuleSetting, Name: "DENY - a"}
	if err := s.PutSetting(name, "1700000000500", t0, 0); err != nil || !s.HasRules() {
		t.Error(err)
	}
	if err := s.PutSetting(name, "1700000000000", t0, 0); err != nil || s.HasRules() { // a rule that is over removes one
		t.Error(err)
	}
	if err := s.PutSetting(name, "0", t0, 0); err != nil || s.Rule([]byte("a"), nil, 1<<62) == nil {
		t.Error(err)
	}
	s.DeleteSetting(name, t0)
	if s.HasRules() {
		t.Error("it is there")
	}
}

// A state is of the limit that its name and its shape say. The name was that of the policy while that had one limit.
func TestLimitNamed(t *testing.T) {
	var s policy.Set
	limits, err := policy.ParseLimits("5/1m 9/1h,algo=window,align=clock")
	if err == nil {
		_, err = s.SetPolicy("gold", limits, policy.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	gold := s.PolicyNamed("gold").Limits
	for _, test := range []struct {
		name, limit string
		want        *policy.Limit
	}{
		{"gold/gcra/1m", "7/60s,burst=2", gold[0]},
		{"gold/window/1h", "3/1h,algo=window", gold[1]},
		{"gold", "7/1m", gold[0]},
		{"gold", "3/1h,algo=window,align=clock,tz=+01:00", gold[1]},
		{"gold", "7/1h", nil},
		{"gold/gcra/1m", "3/1h,algo=window", nil},
		{"gold/gcra/1h", "7/1h", nil},
		{"gold/1m", "7/1m", nil},
		{"silver/gcra/1m", "7/1m", nil},
	} {
		if got := s.LimitNamed(test.name, mustParse(t, test.limit).Shape); got != test.want {
			t.Errorf("%s of %s: %+v, want %+v", test.name, test.limit, got, test.want)
		}
		if test.want != nil && string(test.want.AppendName(nil)) != "@gold/"+string(test.want.Limit.Bare().AppendText(nil)) {
			t.Errorf("%+v is named %s", test.want, test.want.AppendName(nil))
		}
	}
}

// Limits of a temporary and of the lasting policy that are alike share what was used, also where both come at once, as from a file.
func TestAlikeLimitsOfBothShareAnID(t *testing.T) {
	limits := func(text string) *policy.Policy {
		l, err := policy.ParseLimits(text)
		if err != nil {
			t.Fatal(err)
		}
		return policy.New("p", l...)
	}
	var s policy.Set
	if err := s.PutPolicy(limits("5/1m 7/1h,name=a").Until(t0+second, limits("9/1h 9/1m 9/1h,name=a")), nil); err != nil {
		t.Fatal(err)
	}
	during := s.PolicyNamed("p")
	s.EndPolicies(t0 + second)
	after := s.PolicyNamed("p")
	if after == during || len(after.Limits) != 3 {
		t.Fatalf("it has not ended: %v", after)
	}
	if minute, named := after.Limits[1].ID, after.Limits[2].ID; minute != during.Limits[0].ID || named != during.Limits[1].ID {
		t.Errorf("the IDs were %d and %d, and are %d and %d", during.Limits[0].ID, during.Limits[1].ID, minute, named)
	}
	if hour := after.Limits[0].ID; hour == 0 || hour == after.Limits[1].ID || hour == after.Limits[2].ID {
		t.Errorf("another limit has the ID %d", hour)
	}
}
