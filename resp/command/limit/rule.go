package limit

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/store/policy"
)

func (f family) rules() []*command.Row {
	return []*command.Row{
		{Name: "add", Arity: -4, Flags: spec.Write | spec.Audited | spec.DenyOOM, Usage: "ALLOW|PAUSE|DENY pattern [CIDR net] [EX seconds]", Summary: "Allows, pauses or denies keys, whatever their limits.", Group: spec.GroupLimit, Run: f.ruleAdd, Overall: true},
		{Name: "del", Arity: -4, Flags: spec.Write | spec.Audited, Usage: "ALLOW|PAUSE|DENY pattern [CIDR net]", Summary: "Removes a rule.", Group: spec.GroupLimit, Run: f.ruleDel, Overall: true},
		{Name: "list", Arity: -2, Flags: spec.Readonly, Usage: "[pattern]", Summary: "Returns the rules: verdict, pattern, net, seconds left.", Group: spec.GroupLimit, Cost: "O(N) where N is the number of rules", Run: func(c *command.Call) { c.List(f.ruleList) }},
	}
}

// maxRulePattern bounds the patterns of all rules to 17 MB.
const maxRulePattern = 256

var (
	ruleWords    = argument.Options{Valued: []string{"CIDR"}}
	newRuleWords = argument.Options{Valued: []string{"CIDR", "EX"}}
)

// parseRule reads ALLOW|PAUSE|DENY pattern [CIDR net] [EX seconds].
func parseRule(args [][]byte, words argument.Options, nowNS int64) (r policy.Rule, problem string) {
	if !r.SetVerdict(strings.ToUpper(string(args[0]))) {
		return r, fmt.Sprintf(errRuleVerdict, argument.ShortText(args[0]))
	}
	if len(args[1]) > maxRulePattern {
		return r, fmt.Sprintf(errRulePattern, maxRulePattern)
	}
	r.Pattern = string(args[1])
	problem = words.Read(args[2:], func(option string, value []byte) string {
		if option == "CIDR" {
			var err error
			if r.Net, err = netip.ParsePrefix(string(value)); err != nil {
				return fmt.Sprintf(errRuleNet, argument.ShortText(value))
			}
			if strings.HasSuffix(r.Pattern, "*") && !strings.HasSuffix(r.Pattern, `\*`) {
				return errRuleStar
			}
			return ""
		}
		r.UntilNS, problem = argument.UntilNS(value, "cl.rule", nowNS)
		return problem
	})
	return r, problem
}

// unmeant says why a rule cannot match what it seems to mean, or "". Files and engines may have such rules, and they can be removed.
func unmeant(r *policy.Rule) string {
	if r.Pattern != r.Canonical() {
		return errRuleMiddle
	}
	if net, err := netip.ParsePrefix(r.Pattern); err == nil && !r.Net.IsValid() {
		return fmt.Sprintf(errRuleIsNet, net)
	}
	return ""
}

func (f family) ruleAdd(c *command.Call) {
	r, problem := parseRule(c.Args[2:], newRuleWords, c.NowNS)
	problem = cmp.Or(problem, unmeant(&r))
	if problem != "" {
		c.Error("%s", problem)
		return
	}
	change(c, fmt.Sprintf(ErrTooManyRules, policy.MaxRules), func(changed func(bool, error)) {
		f.server().Store.PutRule(r, c.NowNS, changed)
	})
}

func (f family) ruleDel(c *command.Call) {
	r, problem := parseRule(c.Args[2:], ruleWords, c.NowNS)
	if problem != "" {
		c.Error("%s", problem)
		return
	}
	change(c, "", func(changed func(bool, error)) { f.server().Store.DeleteRule(r, c.NowNS, changed) })
}

func (f family) ruleList(c *command.Call) {
	keep, ok := chosen(c)
	if !ok {
		return
	}
	var found []policy.Rule
	for _, r := range f.server().InForce.Rules(c.NowNS) {
		if keep(r.Pattern) {
			found = append(found, r)
		}
	}
	if len(found) == 0 && f.unknown(c) {
		return
	}
	c.Array(len(found))
	for _, r := range found {
		net, left := "", int64(-1)
		if r.Net.IsValid() {
			net = r.Net.String()
		}
		if r.UntilNS != 0 {
			left = (r.UntilNS - c.NowNS + 999_999_999) / 1e9
		}
		c.Array(4)
		c.String(r.Verdict())
		c.String(r.Pattern)
		c.String(net)
		c.Int(left)
	}
}
