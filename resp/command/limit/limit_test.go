package limit

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/store"
	"celld/store/memory"
)

func host() *calltest.Host {
	var h *calltest.Host
	h = calltest.New(memory.Options{},
		Rows(func() Server { return Server{Store: memory.Port{Store: h.Store}, InForce: h.Store, LogMax: 100} })...)
	return h
}

// wants runs commands, each a line, and compares their replies.
func wants(t *testing.T, h *calltest.Host, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := h.Do(strings.Fields(pairs[i])...); got != pairs[i+1] {
			t.Errorf("%s: %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

func fails(text string, args ...any) string { return "-" + fmt.Sprintf(text, args...) + "\r\n" }

func TestPolicies(t *testing.T) {
	h := host()
	wants(t, h, "CL.POLICY SET api 5/1s NX", ":1\r\n", "CL.POLICY SET api 6/1s NX", ":0\r\n", "CL.POLICY SET no 6/1s XX", ":0\r\n",
		"CL.POLICY SET @api 7/1s reset xx", ":1\r\n", "CL.POLICY GET @api", "$4\r\n7/1s\r\n", "CL.POLICY GET no", "$-1\r\n",
		"CL.POLICY LIST a*", "*2\r\n$3\r\napi\r\n$4\r\n7/1s\r\n",
		"CL.POLICY LIST b*", "*0\r\n", "CL.POLICY SET a: 5/1s", fails(errPolicyColon, "a:"),
		"CL.POLICY SET @ 5/1s", fails(errPolicyName, ""),
		"CL.POLICY SET a 5/1s NX XX", fails(argument.ErrSyntax), "CL.POLICY SET a 5/1s NX nx", fails(argument.ErrOptionTwice, "NX"),
		"CL.POLICY SET a 5/1s KEEP", fails(argument.ErrOption, "KEEP", "EX, NX, XX or RESET"),
		"CL.POLICY SET a 101/1s,algo=log", fails(argument.ErrLogMax, 101, 100), "CL.POLICY LIST a b", fails(argument.ErrSyntax),
		"CL.POLICY DEL api", ":1\r\n", "CL.POLICY DEL api", ":0\r\n", "CL.TOP 5 api", fails(argument.ErrNoPolicy, "api"),
		"CL.STATS api", fails(argument.ErrNoPolicy, "api"))
}

func TestRules(t *testing.T) {
	h := host()
	wants(t, h, "CL.RULE ADD deny a* ex 5", ":1\r\n", "CL.RULE ADD ALLOW ip: CIDR 10.0.0.0/8", ":1\r\n",
		"CL.RULE LIST a*", "*1\r\n*4\r\n$4\r\nDENY\r\n$2\r\na*\r\n$0\r\n\r\n:5\r\n",
		"CL.RULE LIST ip*", "*1\r\n*4\r\n$5\r\nALLOW\r\n$3\r\nip:\r\n$10\r\n10.0.0.0/8\r\n:-1\r\n",
		"CL.RULE DEL ALLOW ip: CIDR 10.0.0.0/8", ":1\r\n", "CL.RULE DEL ALLOW ip:", ":0\r\n",
		"CL.RULE ADD MAYBE k", fails(errRuleVerdict, "MAYBE"), "CL.RULE ADD DENY k* CIDR 10.0.0.0/8", fails(errRuleStar),
		"CL.RULE ADD DENY *bot*", fails(errRuleMiddle), "CL.RULE ADD DENY a**", fails(errRuleMiddle),
		"CL.RULE ADD DENY a*b: CIDR 10.0.0.0/8", fails(errRuleMiddle),
		"CL.RULE ADD ALLOW 10.0.0.0/8", fails(errRuleIsNet, "10.0.0.0/8"),
		"CL.RULE ADD ALLOW 2001:db8::/64", fails(errRuleIsNet, "2001:db8::/64"),
		`CL.RULE ADD DENY \*bot\**`, ":1\r\n", `CL.RULE DEL DENY \*bot\**`, ":1\r\n", "CL.RULE DEL DENY *bot*", ":0\r\n",
		"CL.RULE ADD DENY k CIDR 10.0.0.0", fails(errRuleNet, "10.0.0.0"),
		"CL.RULE ADD DENY k EX 0", fails(argument.ErrInvalidExpire, "cl.rule"), "CL.RULE ADD DENY k EX x", fails(argument.ErrNotInteger),
		"CL.RULE ADD DENY k EX 5 EX 5", fails(argument.ErrOptionTwice, "EX"),
		"CL.RULE DEL DENY k EX 5", fails(argument.ErrOption, "EX", "CIDR"),
		"CL.RULE ADD DENY k CIDR", fails(argument.ErrOptionValue, "CIDR"),
		"CL.RULE ADD DENY "+strings.Repeat("p", 257), fails(errRulePattern, 256))
}

func TestLeases(t *testing.T) {
	h := host()
	wants(t, h, "CL.RENEW k 1 5", ":0\r\n", "CL.RELEASE k 1", ":0\r\n", "CL.SETTLE k 1 0", ":0\r\n",
		"CL.RENEW k x 5", fails(argument.ErrNotInteger), "CL.RENEW k 1 0", fails(argument.ErrLease, argument.MaxLeaseMS),
		"CL.RELEASE k x", fails(argument.ErrNotInteger), "CL.SETTLE k 1 -1", fails(errSettle),
		"CL.SETTLE k 1 x", fails(argument.ErrNotInteger), "CL.RESET k l", ":0\r\n", "CL.SETTLE k 1 5 OF a 6 OF a",
		fails(argument.ErrOptionTwice, "OF a"), "CL.SETTLE k 1 5 OF a/b", fails(argument.ErrLimitName, "a/b"))
	many := "CL.SETTLE k 1"
	for n := range store.MaxLimits + 1 {
		many += fmt.Sprint(" 1 OF n", n)
	}
	wants(t, h, many, fails(argument.ErrManyCosts, store.MaxLimits))
}
