package limit

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"celld/store/policy"
)

// A file of policies is read as a whole or not at all, and the error says which line is wrong.
func TestPoliciesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policies")
	const good = "# who  what\n\napi\t100/1m\nlogin  5/1m,algo=log,block=15m\r\n  mail   10000/month,tz=+08:00  \n@slash 3/1s\n"
	var many, manyRules strings.Builder
	for i := range policy.MaxPolicies {
		fmt.Fprintf(&many, "p%d 1/1s\n", i)
		fmt.Fprintf(&manyRules, "rule deny p%d\n", i)
	}
	for _, test := range []struct {
		text, problem string
		policies      int
		rules         int
	}{
		{"", "", 0, 0},
		{good, "", 4, 0},
		{"\ufeffapi 1/1s\napi 2/1s\n", ":2: 'api' is also in line 1", 0, 0},
		{many.String(), "", policy.MaxPolicies, 0},
		{many.String() + "more 1/1s\n", ":65537: there are more than 65536 policies", 0, 0},
		{"api 5/1s\nb 5\n", ":2: invalid limit: limit '5': expected count/period, such as 100/1m", 0, 0},
		{"api 5/1s\n#\n\napi 6/1s\n", ":4: 'api' is also in line 1", 0, 0},
		{"api 5/1s # five\nb.c 6/1s#\n", ":2: invalid limit: period '1s#': unknown unit, expected us, ms, s, m, h or d, such as 1m, or second, minute, hour, day, week, month or year", 0, 0},
		{"api 5/1s # five\nb.c 6/1s #\n  #d 7/1s\n", "", 2, 0},
		{"gold 100/1m 10000/1d 20/1m,algo=conc # a plan\n", "", 1, 0},
		{"gold 100/1m 5/60s\n", ":1: limits 100/1m and 5/1m have the same algorithm and period: one needs a name, such as 100/1m,name=tokens", 0, 0},
		{"gold" + strings.Repeat(" 1/1s", 17), ":1: a policy has 1 to 16 limits", 0, 0},
		{"api\n", ":1: " + errPolicyLine, 0, 0},
		{"api # 5/1s\n", ":1: " + errPolicyLine, 0, 0},
		{"api 5 / 1s\n", ":1: invalid limit: limit '5': expected count/period, such as 100/1m", 0, 0},
		{"api: 5/1s\n", ":1: invalid policy name 'api:': expected no colon at its end, such as 'api' or 'api:cust42'", 0, 0},
		{"api 5\nb: 5/1s\n#\nc 5/1s x\nd 1/1s\nd 2/1s", ":1: invalid limit: limit '5': expected count/period, such as 100/1m" +
			"\nFILE:2: invalid policy name 'b:': expected no colon at its end, such as 'api' or 'api:cust42'" +
			"\nFILE:4: invalid limit: limit 'x': expected count/period, such as 100/1m" + "\nFILE:6: 'd' is also in line 5", 0, 0},
		{"api 0/1s\n", ":1: invalid limit: count '0': expected 1 to 9007199254740991", 0, 0},
		{good + "x 5/1s,burst=0\n", ":7: invalid limit: burst '0': expected 1 to 2147483647", 0, 0},
		{"\n" + strings.Repeat("n", 200) + " 5/1s\n", ":2: invalid policy name '" + strings.Repeat("n", 128) + "': expected 1 to 64 letters, digits, _, -, . and :", 0, 0},
		{strings.Repeat("n", 100_000) + " 5/1s\n", ":1: invalid policy name '" + strings.Repeat("n", 128) + "': expected 1 to 64 letters, digits, _, -, . and :", 0, 0},
		{"policy api 5/1s 6/1m # a plan\npolicy policy 5/1s\npolicy @rule 5/1s\npolicy 10 5/1s\nPolicy 5/1s\n", "", 5, 0},
		{"policy api 5/1s\napi 6/1s\n", ":2: 'api' is also in line 1", 0, 0},
		{"policy\n", ":1: " + errPolicyLine, 0, 0},
		{"policy api\n", ":1: " + errPolicyLine, 0, 0},
		{"policy 5/1m\nrule 5/1m 6/1h\n", ":1: a policy named 'policy' is written 'policy policy 5/1m'\nFILE:2: a policy named 'rule' is written 'policy rule 5/1m'", 0, 0},
		{"rule deny bad:* # all\n\trule Allow ip: cidr 10.0.0.0/8\r\nrule DENY ip:\nrule allow \"\" CIDR ::1/128\nrule deny \"#\\x00 \\\"\"", "", 0, 5},
		{"rule deny ip: CIDR 10.1.0.0/8\nrule deny ip: CIDR 10.2.0.0/8\n", ":2: 'rule deny ip: CIDR 10.0.0.0/8' is also in line 1", 0, 0},
		{"rule\n", ":1: " + errPolicyLine, 0, 0},
		{"rule deny\nrule deny # k\nrule k deny\n", ":1: " + errRuleLine + "\nFILE:2: " + errRuleLine + "\nFILE:3: a rule is ALLOW, PAUSE or DENY, not 'k'", 0, 0},
		{"deny bad:*\nALLOW k CIDR ::1/128\ndeny 5/1s\n", ":1: " + errRuleLine + "\nFILE:2: " + errRuleLine, 0, 0},
		{"rule deny k EX 5\nrule deny k CIDR 10.0.0.0/8 ex\n", ":1: " + errRuleOfFileEX + "\nFILE:2: " + errRuleOfFileEX, 0, 0},
		{"rule deny k FOR 5\n", ":1: unknown option 'FOR': expected CIDR", 0, 0},
		{"rule deny ip:* CIDR 10.0.0.0/8\nrule deny ip: CIDR 10\n", ":1: with CIDR, the pattern is the text before the address, without *" +
			"\nFILE:2: invalid net '10': expected an address and its bits, such as 10.0.0.0/8", 0, 0},
		{"rule deny it's\n", ":1: " + errQuotes, 0, 0},
		{"api 5/1s # it's\n", "", 1, 0},
		{manyRules.String(), "", 0, policy.MaxRules},
		{manyRules.String() + "rule deny more\n", ":65537: there are more than 65536 rules", 0, 0},
		{"big 20000/1h,algo=log\n", ":1: invalid limit: count '20000': algo=log keeps at most 10000 calls (--log-max)", 0, 0},
	} {
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := ReadFile(file, 10_000)
		want := "read the policies: " + file + strings.ReplaceAll(test.problem, "FILE", "read the policies: "+file)
		if len(f.Policies) != test.policies || len(f.Rules) != test.rules ||
			(err != nil) != (test.problem != "") || err != nil && err.Error() != want {
			t.Errorf("%.60q: %d policies, %d rules, %v; want %q", test.text, len(f.Policies), len(f.Rules), err, want)
		}
	}
	if _, err := ReadFile(file+"-nosuch", 1); err == nil || !strings.HasPrefix(err.Error(), "read the policies: open ") {
		t.Error(err)
	}
}

// A pattern stands in quotes if it could not be read otherwise, or not be seen.
func TestRuleLine(t *testing.T) {
	for pattern, want := range map[string]string{
		"ip:": "ip:", "é#": "é#", "": `""`, "#a": `"#a"`, "a b": `"a b"`, "it's": `"it's"`, `"`: `"\""`, "\n": `"\n"`, "\xff": `"\xff"`,
		"\u00a0": `"\xc2\xa0"`, `a\b`: `a\b`,
	} {
		line := RuleLine(policy.Rule{Pattern: pattern, Net: netip.MustParsePrefix("10.1.0.0/8")})
		l, problem := parseLine(line, false, 0)
		if line != "rule allow "+want+" CIDR 10.0.0.0/8" || l.rule.Pattern != pattern || problem != "" {
			t.Errorf("%q: %s, which is read as %q, %q", pattern, line, l.rule.Pattern, problem)
		}
	}
}

// ? and [ are letters, which --check says.
func TestWarningsOfRules(t *testing.T) {
	f, err := parseFile("p", "api 1/1m # why?\nrule deny bad?\n\nrule allow ip:[ CIDR ::/0\nrule deny bad:*\n", 10)
	want := []string{
		"line 2 of --policies: ? and [ stand for themselves in 'rule deny bad?'; only * at the end stands for what follows",
		"line 4 of --policies: ? and [ stand for themselves in 'rule allow ip:[ CIDR ::/0'; only * at the end stands for what follows",
	}
	if got := f.Warnings(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// A file of which every line is wrong takes some 20 lines to say so.
func TestBadLinesOfPoliciesAreCounted(t *testing.T) {
	for _, test := range []struct {
		bad  int
		last string
	}{
		{20, ":20: " + errPolicyLine}, {21, ": more bad lines: 1"}, {70_000, ": more bad lines: 69980"},
	} {
		file := filepath.Join(t.TempDir(), "policies")
		if err := os.WriteFile(file, []byte(strings.Repeat("x\n", test.bad)), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := ReadFile(file, 10)
		if err == nil {
			t.Fatal(len(f.Policies))
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) > mostBadLines+1 || lines[len(lines)-1] != "read the policies: "+file+test.last {
			t.Errorf("%d bad lines: %d are told, the last is %s", test.bad, len(lines), lines[len(lines)-1])
		}
	}
}
