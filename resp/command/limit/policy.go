package limit

import (
	"fmt"
	"strings"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/store/policy"
)

func (f family) policies() []*command.Row {
	return []*command.Row{
		{Name: "set", Arity: -4, Flags: spec.Write | spec.Audited | spec.DenyOOM, Usage: "name limit [limit] ... [NX|XX] [RESET] [EX seconds]", Summary: "Sets the limits of a policy, for some seconds with EX.", Group: spec.GroupLimit, Run: f.policySet, Overall: true},
		{Name: "get", Arity: 3, Flags: spec.Readonly, Usage: "name", Summary: "Returns the limits of a policy.", Group: spec.GroupLimit, Run: f.policyGet},
		{Name: "del", Arity: 3, Flags: spec.Write | spec.Audited, Usage: "name", Summary: "Removes a policy and what was used of it.", Group: spec.GroupLimit, Run: f.policyDel, Overall: true},
		{Name: "list", Arity: -2, Flags: spec.Readonly, Usage: "[pattern]", Summary: "Returns the policies and their limits.", Group: spec.GroupLimit, Cost: "O(N) where N is the number of policies", Run: func(c *command.Call) { c.List(f.policyList) }},
		{Name: "ttl", Arity: 3, Flags: spec.Readonly, Usage: "name", Summary: "Returns the seconds left of EX, as TTL does.", Group: spec.GroupLimit, Run: f.policyTTL},
		{Name: "save", Arity: 2, Flags: spec.Admin | spec.Audited | spec.NoScript | spec.NoMulti, Summary: "Writes the policies and rules to the file of --policies.", Group: spec.GroupLimit, Cost: "O(N) where N is the number of policies, rules and lines", Run: f.policySave},
	}
}

// maxPolicyName bounds the names of all policies to 4 MB.
const maxPolicyName = 64

// PolicyName reads a name, with or without the @ before it. It also returns the text of an error, or "".
func PolicyName(arg []byte) (name, problem string) { // files and engines may have others, of an earlier version
	name = strings.TrimPrefix(string(arg), "@")
	other := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_.:-", c))
	}
	switch {
	case name == "" || len(name) > maxPolicyName || strings.ContainsFunc(name, other):
		return "", fmt.Sprintf(errPolicyName, argument.ShortText([]byte(name)))
	case strings.HasSuffix(name, ":"):
		return "", fmt.Sprintf(errPolicyColon, argument.ShortText([]byte(name)))
	}
	return name, ""
}

// PolicyLimits reads the limits of a policy. It also returns the text of an error, or "".
func PolicyLimits[T ~[]byte | ~string](name string, words []T, logMax int64) (limits []cell.Limit, problem string) {
	for _, word := range words {
		l, problem := argument.ParseLiteral([]byte(word), logMax)
		if problem != "" {
			return nil, problem
		}
		limits = append(limits, l)
	}
	if err := policy.New(name, limits...).Check(); err != nil {
		return nil, "ERR " + err.Error()
	}
	return limits, ""
}

var policyWords = argument.Options{Flags: []string{"NX", "XX", "RESET"}, Valued: []string{"EX"}, OneOf: [][]string{{"NX", "XX"}}}

// parsePolicySet reads name limit [limit ...] [NX|XX] [RESET] [EX seconds].
func parsePolicySet(args [][]byte, logMax, nowNS int64) (name string, limits []cell.Limit, o policy.Options, problem string) {
	if name, problem = PolicyName(args[2]); problem != "" {
		return name, nil, o, problem
	}
	words := 4
	for words < len(args) && argument.IsLimit(args[words]) {
		words++
	}
	o.NowNS = nowNS
	problem = policyWords.Read(args[words:], func(option string, value []byte) (problem string) {
		switch option {
		case "NX":
			o.IfAbsent = true
		case "XX":
			o.IfThere = true
		case "RESET":
			o.Reset = true
		case "EX":
			o.UntilNS, problem = argument.UntilNS(value, "cl.policy", nowNS)
		}
		return problem
	})
	if problem == "" {
		limits, problem = PolicyLimits(name, args[3:words], logMax)
	}
	return name, limits, o, problem
}

// policySet goes on when its client has gone, as do the other changes of policies and rules.
func (f family) policySet(c *command.Call) {
	s := f.server()
	name, limits, o, problem := parsePolicySet(c.Args, s.LogMax, c.NowNS)
	if problem != "" {
		c.Error("%s", problem)
		return
	}
	change(c, fmt.Sprintf(ErrTooManyPolicies, policy.MaxPolicies), func(changed func(bool, error)) {
		s.Store.SetPolicy(name, limits, o, changed)
	})
}

func (f family) policyGet(c *command.Call) {
	if p, known := f.policyNamed(c); p != nil {
		replyLimits(c, p)
	} else if known {
		c.Null()
	}
}

// policyTTL rounds as TTL does.
func (f family) policyTTL(c *command.Call) {
	switch p, known := f.policyNamed(c); {
	case p != nil && p.UntilNS != 0:
		c.Int((max(0, p.UntilNS-c.NowNS)/1e6 + 500) / 1000)
	case p != nil:
		c.Int(-1)
	case known:
		c.Int(-2)
	}
}

// policyNamed finds the policy of just the name that a call has. Where it is not known whether there is one, it answers with an error.
func (f family) policyNamed(c *command.Call) (p *policy.Policy, known bool) {
	p = f.server().InForce.PolicyNamed(strings.TrimPrefix(string(c.Args[2]), "@"))
	return p, p != nil || !f.unknown(c)
}

// unknown answers with an error where there may be policies or rules that are not known here, and reports whether it does.
func (f family) unknown(c *command.Call) bool {
	err := f.server().Store.PoliciesUnknown()
	if err != nil {
		c.Error(argument.ErrStoreDown, err)
	}
	return err != nil
}

func (f family) policyDel(c *command.Call) {
	change(c, "", func(changed func(bool, error)) {
		f.server().Store.DeletePolicy(strings.TrimPrefix(string(c.Args[2]), "@"), changed)
	})
}

func (f family) policyList(c *command.Call) {
	keep, ok := chosen(c)
	if !ok {
		return
	}
	var found []*policy.Policy
	for _, p := range f.server().InForce.Policies() {
		if keep(p.Name) {
			found = append(found, p)
		}
	}
	if len(found) == 0 && f.unknown(c) {
		return
	}
	c.Map(len(found))
	for _, p := range found {
		c.String(p.Name)
		replyLimits(c, p)
	}
}

// replyLimits answers with the limit of a policy, or with a list of several.
func replyLimits(c *command.Call, p *policy.Policy) {
	if len(p.Limits) > 1 {
		c.Array(len(p.Limits))
	}
	for _, l := range p.Limits {
		c.String(l.Limit.String())
	}
}
