package limit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
	"celld/resp/command/argument"
	"celld/store/policy"
)

// What cannot be saved is one line of error, and the file stays as it is.
func TestPolicySave(t *testing.T) {
	h, s, server := counted()
	path := filepath.Join(t.TempDir(), "policies")
	wants(t, h, "CL.POLICY SET b 5/1s", ":1\r\n", "CL.POLICY SET gold 100/1m 10/1d", ":1\r\n", "CL.RULE ADD DENY bad:*", ":1\r\n",
		"CL.RULE ADD DENY ip: CIDR 10.1.0.0/8", ":1\r\n", "CL.RULE ADD ALLOW soon EX 5", ":1\r\n", "CL.POLICY SET b 9/1s EX 5", ":1\r\n",
		"CL.POLICY SET alone 9/1s EX 5", ":1\r\n", "CL.POLICY SAVE", fails(errNoFile))
	saved := 0
	server.File, server.Saved = path, func() { saved++ }
	if got := h.Do("CL.POLICY", "SAVE"); !strings.HasPrefix(got, "-ERR nothing is saved: read the policies: open "+path) {
		t.Errorf("%q", got)
	}
	file := func(want string) {
		t.Helper()
		if text, err := os.ReadFile(path); string(text) != want || err != nil {
			t.Errorf("it has\n%s%v", text, err)
		}
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	const bad = "b\nc 5\n"
	put(bad)
	wants(t, h, "CL.POLICY SAVE", "-ERR nothing is saved: read the policies: "+path+":1: "+errPolicyLine+"\r\n")
	file(bad)
	put("\ufeff# mine\r\n  b  4/1s   # five\r\ngone 1/1s # gone\nrule deny bad:* #all\nrule allow soon\npolicy gold 100/60s 10/1d")
	s.unknown = errors.New("gone")
	wants(t, h, "CL.POLICY SAVE", fails(argument.ErrStoreDown, "gone"))
	s.unknown = nil
	want := "\ufeff# mine\r\n  b  5/1s   # five\r\nrule deny bad:* #all\npolicy gold 100/60s 10/1d\nrule deny ip: CIDR 10.0.0.0/8\n"
	for range 2 {
		wants(t, h, "CL.POLICY SAVE", "+OK\r\n")
		file(want)
	}
	if err := h.Store.PutSetting(policy.Setting{Name: "old:"}, "5/1h", h.NowNS); err != nil {
		t.Fatal(err)
	}
	wants(t, h, "CL.POLICY SAVE", "-ERR nothing is saved: a start could not read it: read the policies: "+path+
		":6: invalid policy name 'old:': expected no colon at its end, such as 'api' or 'api:cust42'\r\n")
	file(want)
	if saved != 2 {
		t.Errorf("it is told %d times that the file is written", saved)
	}
}

var (
	drawnName   = rapid.StringMatching(`[a-d]|policy|rule`)
	drawnLimits = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"5/1s", "6/1s", "7/60s,burst=2", "8/day,tz=+08:00", "9/1h,algo=conc",
		"2/1h,algo=log,block=1m,shadow"}), 1, 4, func(text string) string { return text[2:4] })
	drawnRule = rapid.Custom(func(t *rapid.T) policy.Rule {
		odd := rapid.SampledFrom([]string{"a", "", "#a", "a b", `it's "`, "é", "\x00\xff\u00a0"})
		r := policy.Rule{Deny: rapid.Bool().Draw(t, "deny"), Pattern: rapid.OneOf(odd, rapid.String()).Draw(t, "pattern")}
		if net := rapid.SampledFrom([]string{"", "10.1.0.0/8", "::1/128"}).Draw(t, "net"); net != "" && !strings.HasSuffix(r.Pattern, "*") {
			r.Net.UnmarshalText([]byte(net))
		}
		return r
	})
	drawnComment = rapid.SampledFrom([]string{"", " ", "\t# it's \"one", " #"})
	drawnEnd     = rapid.SampledFrom([]string{"\n", "\r\n"})
)

// SAVE writes what is in force, without rules that end, and a start reads the same. Lines that are right stay byte for byte in their order,
// and what is changed keeps its comment.
func TestPolicySaveKeepsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies")
	rapid.Check(t, func(t *rapid.T) {
		h, _, server := counted()
		server.File = path
		var lines []string
		seen := map[string]bool{}
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			text, name := "", ""
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
			case 1:
				rule := drawnRule.Draw(t, "rule")
				text = RuleLine(rule)
				name = text
			default:
				name = drawnName.Draw(t, "name")
				if text = name; len(name) > 1 || rapid.Bool().Draw(t, "long") {
					text = "policy " + name
				}
				text += "  " + strings.Join(drawnLimits.Draw(t, "limits"), "\t")
			}
			if name == "" || !seen[name] {
				seen[name] = true
				indent := rapid.SampledFrom([]string{"", " "}).Draw(t, "indent")
				lines = append(lines, indent+text+drawnComment.Draw(t, "comment")+drawnEnd.Draw(t, "end"))
			}
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := ReadFile(path, 100)
		if err != nil {
			t.Fatal(err)
		}
		put := func(name string, limits []cell.Limit) {
			if _, err := server.InForce.(*policy.Set).SetPolicy(name, limits, policy.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range before.Policies {
			if rapid.Bool().Draw(t, "stays") {
				put(p.Name, p.Plain())
			}
		}
		rules := drawnRules(t, before.Rules)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			limits, problem := PolicyLimits("p", drawnLimits.Draw(t, "limits"), 100)
			if problem != "" {
				t.Fatal(problem)
			}
			put(drawnName.Draw(t, "name"), limits)
		}
		for _, r := range rules {
			if _, err := h.Store.PutRule(r, h.NowNS); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.Do("CL.POLICY", "SAVE"); got != "+OK\r\n" {
			t.Fatalf("%q", got)
		}

		after, err := ReadFile(path, 100)
		if err != nil {
			t.Fatal(err)
		}
		inForce := map[string]string{}
		for _, p := range server.InForce.Policies() {
			inForce[p.Name] = p.String()
		}
		for _, r := range server.InForce.Rules(0) {
			if r.Pattern = r.Canonical(); r.UntilNS == 0 { // a star from before \* was asked for is written as one is written now
				inForce[r.Name()] = ""
			}
		}
		got := map[string]string{}
		for _, p := range after.Policies {
			got[p.Name] = p.String()
		}
		for _, r := range after.Rules {
			got[r.Name()] = ""
		}
		if fmt.Sprint(got) != fmt.Sprint(inForce) {
			t.Fatalf("it has %q, in force is %q", got, inForce)
		}
		text, _ := os.ReadFile(path)
		rest := strings.SplitAfter(string(text), "\n")
		for _, l := range before.lines {
			name := l.name
			if l.policy == nil && name != "" {
				name = l.rule.Name()
			}
			limits, stays := inForce[name]
			if name != "" && !stays {
				continue
			}
			fits := func(line string) bool { return line == l.text }
			if l.policy != nil && l.policy.String() != limits {
				fits = func(line string) bool {
					return strings.HasPrefix(line, l.text[:l.at]+limits) && strings.HasSuffix(line, l.text[l.end:])
				}
			}
			at := slices.IndexFunc(rest, fits)
			if at != 0 {
				t.Fatalf("%q is not next in %q", l.text, rest)
			}
			rest = rest[1:]
		}
	})
}

// drawnRules are some of these, some that end, and others.
func drawnRules(t *rapid.T, rules []policy.Rule) (drawn []policy.Rule) {
	for _, r := range append(slices.Clone(rules), rapid.SliceOfN(drawnRule, 0, 3).Draw(t, "rules")...) {
		switch rapid.IntRange(0, 3).Draw(t, "holds") {
		case 0:
			continue
		case 1:
			r.UntilNS = 1 << 62
		}
		drawn = append(drawn, r)
	}
	return drawn
}
