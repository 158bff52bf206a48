package policy_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"celld/store/policy"
)

// Each kind of rule holds from when it is put until it is removed, and both are told.
func TestARuleComesAndGoes(t *testing.T) {
	for _, c := range []struct{ net, pattern, key, other string }{
		{"", "a", "a", "ab"},
		{"", "a*", "ab", "b"},
		{"", `a\*`, "a*", "ab"},
		{"", `a\*b\**`, "a*b*c", "a*bc"},
		{"", "a*b", "a*b", "axb"}, // from before \* was asked for
		{"10.0.0.0/8", "ip:", "ip:10.1.2.3", "ip:11.0.0.0"},
		{"::ffff:10.0.0.0/104", "ip:", "ip:10.1.2.3", "ip:11.0.0.0"},
		{"2001:db8::1/128", "ip:", "ip:2001:db8::1", "ip:2001:db8::2"},
		{"2001:db8::1/127", "ip:", "ip:2001:db8::", "ip:2001:db8::2"},
		{"::/0", "", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255."}, // the longest address
	} {
		for _, deny := range []bool{false, true} {
			s := policy.Set{Journal: true}
			r := policy.Rule{Deny: deny, Pattern: c.pattern}
			if c.net != "" {
				r.Net = netip.MustParsePrefix(c.net)
			}
			for turn := range int64(3) {
				if added, err := s.PutRule(r, t0); !added || err != nil {
					t.Fatalf("%+v is put: %v, %v", r, added, err)
				}
				if added, err := s.PutRule(r, t0); added || err != nil {
					t.Fatalf("%+v is put again: %v, %v", r, added, err)
				}
				if got := s.Rule([]byte(c.key), nil, t0); got == nil || got.Deny != deny || !s.HasRules() {
					t.Fatalf("%+v for %s: %+v", r, c.key, got)
				}
				if got := s.Rule([]byte(c.other), nil, t0); got != nil {
					t.Fatalf("%+v for %s: %+v", r, c.other, got)
				}
				wantChanged(t, &s, 3*turn+2, s.Rules(t0)[0].Name())
				name := s.Rules(t0)[0].Name()
				if !s.DeleteRule(r, t0) || s.DeleteRule(r, t0) || s.Rule([]byte(c.key), nil, t0) != nil || s.HasRules() {
					t.Fatalf("%+v is deleted, and holds", r)
				}
				wantChanged(t, &s, 3*turn+3, name)
			}
		}
	}
}

// A rule that denies holds for any of what is seen. One that allows holds for addresses only if each of them is allowed.
func TestRulesSeeAddresses(t *testing.T) {
	var s policy.Set
	for _, r := range []policy.Rule{
		{Deny: true, Pattern: "2001:db8:1:2::5"}, {Deny: true, Pattern: "", Net: netip.MustParsePrefix("192.0.2.0/24")},
		{Deny: true, Pattern: "/3/bob/8/10.1.2.5"}, {Pattern: "", Net: netip.MustParsePrefix("10.0.0.0/8")}, {Pattern: "203.0.113.9"},
		{Pattern: "", Net: netip.MustParsePrefix("2001:db8::/32")}, {Pattern: "ip:", Net: netip.MustParsePrefix("2001:db8::/32")},
		{Pattern: "ip4:", Net: netip.MustParsePrefix("10.0.0.0/8")},
	} {
		if _, err := s.PutRule(r, t0); err != nil {
			t.Fatal(err)
		}
	}
	const none, allow, deny = "none", "allow", "deny"
	for _, c := range []struct{ key, whole, addresses, want string }{
		{"k", "", "", none}, {"k", "", "10.1.2.5", allow}, {"k", "", "11.1.2.5", none}, {"k", "", "junk", none},
		{"k", "", "10.1.2.5 203.0.113.9", allow}, {"k", "", "10.1.2.5 203.0.113.8", none}, {"k", "", "203.0.113.8 10.1.2.5", none},
		{"k", "", "10.1.2.5 192.0.2.7", deny}, {"k", "", "192.0.2.7", deny}, {"10.1.2.5", "", "192.0.2.7", deny},
		{"2001:db8:1:2::/64", "2001:db8:1:2::5", "2001:db8:1:2::5", deny},
		{"2001:db8:1:2::/64", "2001:db8:1:2::6", "2001:db8:1:2::6", allow},
		{"/3/bob/10.1.2.4", "/3/bob/8/10.1.2.5", "10.1.2.5", deny}, {"/3/ann/8/10.1.2.5", "/3/ann/8/10.1.2.5", "10.1.2.5", allow},
		// A net is in a wider one.
		{"ip:2001:db8:1:2::/64", "", "", allow}, {"ip:2001:db9:1:2::/64", "", "", none}, {"ip:2001::/16", "", "", none},
		{"ip4:10.1.2.0/24", "", "", allow}, {"ip4:10.0.0.0/7", "", "", none}, {"ip4:10.1.2.0/33", "", "", none}, {"ip4:/", "", "", none},
		{"ip4:::ffff:10.1.2.0/120", "", "", allow}, {"ip4:fe80::1%eth0", "", "", none},
	} {
		seen := &policy.Seen{}
		if c.whole != "" {
			seen.Key = []byte(c.whole)
		}
		for _, address := range strings.Fields(c.addresses) {
			seen.Addresses = append(seen.Addresses, []byte(address))
		}
		got := none
		if r := s.Rule([]byte(c.key), seen, t0); r != nil {
			got = map[bool]string{false: allow, true: deny}[r.Deny]
		}
		if got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func wantChanged(t *testing.T, s *policy.Set, changes int64, names ...string) {
	t.Helper()
	var got []string
	s.DrainSettings(func(c policy.Change) { got = append(got, c.Name) })
	if !slices.Equal(got, names) || s.SettingChanges() != changes {
		t.Errorf("%d changes, of %q; want %d, of %q", s.SettingChanges(), got, changes, names)
	}
}

// Two of one net, before and behind, leave each other alone.
func TestOneRuleOfANetIsDeleted(t *testing.T) {
	var s policy.Set
	for _, net := range []string{"10.0.0.0/8", "10.1.0.0/16"} {
		if _, err := s.PutRule(policy.Rule{Pattern: "ip:", Net: netip.MustParsePrefix(net), Deny: true}, t0); err != nil {
			t.Fatal(err)
		}
	}
	if !s.DeleteRule(policy.Rule{Pattern: "ip:", Net: netip.MustParsePrefix("10.1.0.0/16"), Deny: true}, t0) {
		t.Error("it was not there")
	}
	if s.Rule([]byte("ip:10.1.0.1"), nil, t0) == nil {
		t.Error("the other holds no longer")
	}
}

// A rule that is over is as one that is not there, and leaves within 10 s, at the time that was said.
func TestRulesEnd(t *testing.T) {
	s := policy.Set{Journal: true}
	put := func(pattern string, untilNS, nowNS int64) bool {
		added, err := s.PutRule(policy.Rule{Pattern: pattern, UntilNS: untilNS}, nowNS)
		if err != nil {
			t.Fatal(err)
		}
		return added
	}
	put("never", 0, t0)
	if s.RulesDue(1 << 62) {
		t.Error("a rule for ever is to be removed")
	}
	put("late", t0+60*second, t0)
	put("soon", t0+second, t0)
	if put("soon", t0+2*second, t0) || !put("soon", t0+2*second, t0+2*second) {
		t.Error("a rule is new if none held")
	}
	if !s.DeleteRule(policy.Rule{Pattern: "soon"}, t0+second) {
		t.Error("it did not hold")
	}
	put("soon", t0+second, t0)
	if s.DeleteRule(policy.Rule{Pattern: "soon"}, t0+second) {
		t.Error("it held, though it was over")
	}
	put("soon", t0+second, t0)
	for _, c := range []struct {
		after int64
		names []string
	}{
		{0, []string{"late", "never", "soon"}}, {10, []string{"late", "never", "soon"}}, {11, []string{"late", "never"}},
		{69, []string{"late", "never"}}, {70, []string{"never"}}, {1000, []string{"never"}},
	} {
		now := t0 + c.after*second
		before := len(s.Settings(policy.RuleSetting))
		due := s.RulesDue(now)
		s.SweepRules(now)
		var names []string
		for _, name := range s.Settings(policy.RuleSetting) {
			names = append(names, name[len("ALLOW - "):])
		}
		if !slices.Equal(names, c.names) || due != (len(names) < before) {
			t.Errorf("after %d s there are %q, due %v; want %q", c.after, names, due, c.names)
		}
		put("late2", 0, now) // no lock is kept
		s.DeleteRule(policy.Rule{Pattern: "late2"}, now)
	}
}

// A policy is saved by its limit's text, and removed by its name.
func TestPoliciesAsSettings(t *testing.T) {
	s := policy.Set{Journal: true}
	want := []string{"", "a", "b", "c", "d", "e", "f", "g"}
	for i := range want {
		name := want[len(want)-1-i]
		if err := s.PutSetting(policy.Setting{Kind: policy.PolicySetting, Name: name}, "5/1m,burst=2", t0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if got := s.Settings(policy.PolicySetting); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	a := policy.Setting{Kind: policy.PolicySetting, Name: "a"}
	if text, ok := s.SettingText(a, 0); text != "5/1m,burst=2" || !ok {
		t.Errorf("%q, %v", text, ok)
	}
	if p := s.Policy([]byte(":x:y")); p == nil || p.Name != "" {
		t.Errorf("the policy of no name is not fallen back to: %+v", p)
	}
	s.DeleteSetting(a, t0)
	if text, ok := s.SettingText(a, 0); text != "" || ok || s.PolicyNamed("a") != nil {
		t.Errorf("deleted, and says %q, %v", text, ok)
	}
	if text, ok := s.SettingText(policy.Setting{Kind: policy.RuleSetting, Name: "ALLOW - a"}, 0); text != "" || ok {
		t.Errorf("no rule says %q, %v", text, ok)
	}
}

// A file's ms are held to what nanoseconds can be.
func TestTheLastEndOfARule(t *testing.T) {
	for text, fits := range map[string]bool{"0": true, "1": true, "9223372036852": true, "9223372036853": true, "9223372036854": false,
		"-0": true} {
		var s policy.Set
		if err := s.PutSetting(policy.Setting{Kind: policy.RuleSetting, Name: "DENY - a"}, text, 0, 0); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}
