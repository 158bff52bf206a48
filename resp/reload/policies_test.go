package reload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"celld/store/policy"
)

// A file of policies is read as a whole or not at all, and the error says which line is wrong.
func TestPoliciesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policies")
	const good = "# who  what\n\napi\t100/1m\nlogin  5/1m,algo=log,block=15m\r\n  mail   10000/month,tz=+08:00  \n@slash 3/1s\n"
	var many strings.Builder
	for i := range policy.MaxPolicies {
		fmt.Fprintf(&many, "p%d 1/1s\n", i)
	}
	for _, test := range []struct {
		text, problem string
		policies      int
	}{
		{"", "", 0},
		{good, "", 4},
		{"\ufeffapi 1/1s\napi 2/1s\n", ":2: 'api' is also in line 1", 0},
		{many.String(), "", policy.MaxPolicies},
		{many.String() + "more 1/1s\n", ":65537: there are more than 65536 policies", 0},
		{"api 5/1s\nb 5\n", ":2: invalid limit: limit '5': expected count/period, such as 100/1m", 0},
		{"api 5/1s\n#\n\napi 6/1s\n", ":4: 'api' is also in line 1", 0},
		{"api 5/1s # five\nb.c 6/1s#\n", ":2: invalid limit: period '1s#': unknown unit, expected us, ms, s, m, h or d", 0},
		{"api 5/1s # five\nb.c 6/1s #\n  #d 7/1s\n", "", 2},
		{"gold 100/1m 10000/1d 20/1m,algo=conc # a plan\n", "", 1},
		{"gold 100/1m 5/60s\n", ":1: a policy has one limit of an algorithm and period, not 100/1m and 5/1m", 0},
		{"gold" + strings.Repeat(" 1/1s", 17), ":1: a policy has 1 to 16 limits", 0},
		{"api\n", ":1: " + errPolicyLine, 0},
		{"api # 5/1s\n", ":1: " + errPolicyLine, 0},
		{"api 5 / 1s\n", ":1: invalid limit: limit '5': expected count/period, such as 100/1m", 0},
		{"api: 5/1s\n", ":1: invalid policy name 'api:': expected no colon at its end, such as 'api' or 'api:cust42'", 0},
		{"api 5\nb: 5/1s\n#\nc 5/1s x\nd 1/1s\nd 2/1s", ":1: invalid limit: limit '5': expected count/period, such as 100/1m" +
			"\nFILE:2: invalid policy name 'b:': expected no colon at its end, such as 'api' or 'api:cust42'" +
			"\nFILE:4: invalid limit: limit 'x': expected count/period, such as 100/1m" + "\nFILE:6: 'd' is also in line 5", 0},
		{"api 0/1s\n", ":1: invalid limit: count '0': expected 1 to 2147483647", 0},
		{good + "x 5/1s,algo=tokens\n", ":7: invalid limit: algo 'tokens': expected gcra, window, slide, log or conc", 0},
		{"\n" + strings.Repeat("n", 200) + " 5/1s\n", ":2: invalid policy name '" + strings.Repeat("n", 128) + "': expected 1 to 64 letters, digits, _, -, . and :", 0},
		{strings.Repeat("n", 100_000) + " 5/1s\n", ":1: a line has at most 65535 bytes", 0},
		{"big 20000/1h,algo=log\n", ":1: invalid limit: count '20000': algo=log keeps at most 10000 calls (--log-max)", 0},
	} {
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := ReadPolicies(file, 10_000)
		want := "read the policies: " + file + strings.ReplaceAll(test.problem, "FILE", "read the policies: "+file)
		if len(list) != test.policies || (err != nil) != (test.problem != "") || err != nil && err.Error() != want {
			t.Errorf("%.60q: %d policies, %v; want %q", test.text, len(list), err, want)
		}
	}
	if _, err := ReadPolicies(file+"-nosuch", 1); err == nil || !strings.HasPrefix(err.Error(), "read the policies: open ") {
		t.Error(err)
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
		list, err := ReadPolicies(file, 10)
		if err == nil {
			t.Fatal(len(list))
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) > mostBadLines+1 || lines[len(lines)-1] != "read the policies: "+file+test.last {
			t.Errorf("%d bad lines: %d are told, the last is %s", test.bad, len(lines), lines[len(lines)-1])
		}
	}
}
