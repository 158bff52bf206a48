package limit

import (
	"context"
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
		{Name: "set", Arity: -4, Flags: spec.Write | spec.DenyOOM, Usage: "name limit [NX|XX] [RESET]", Summary: "Sets the limit of a policy.", Group: spec.GroupLimit, Run: now(f.policySet), Scan: f.policySet},
		{Name: "get", Arity: 3, Flags: spec.Readonly, Usage: "name", Summary: "Returns the limit of a policy.", Group: spec.GroupLimit, Run: f.policyGet},
		{Name: "del", Arity: 3, Flags: spec.Write, Usage: "name", Summary: "Removes a policy and what was used of it.", Group: spec.GroupLimit, Run: now(f.policyDel), Scan: f.policyDel},
		{Name: "list", Arity: -2, Flags: spec.Readonly, Usage: "[pattern]", Summary: "Returns the policies and their limits.", Group: spec.GroupLimit, Cost: "O(N) where N is the number of policies", Run: func(c *command.Call) { c.List(f.policyList) }},
	}
}

// maxPolicyName bounds the names of all policies to 8 MB.
const maxPolicyName = 128

// PolicyName reads a name, with or without the @ before it. It also returns the text of an error, or "".
func PolicyName(arg []byte) (name, problem string) {
	name = strings.TrimPrefix(string(arg), "@")
	if name == "" || len(name) > maxPolicyName {
		return "", errPolicyName
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c == 0x7f {
			return "", errPolicyName
		}
	}
	if strings.HasSuffix(name, ":") { // files and engines may have one of an earlier version
		return "", fmt.Sprintf(errPolicyColon, argument.ShortText([]byte(name)))
	}
	return name, ""
}

var policyWords = argument.Options{Flags: []string{"NX", "XX", "RESET"}}

// parsePolicySet reads name limit [NX|XX] [RESET].
func parsePolicySet(args [][]byte, logMax int64) (name string, limit cell.Limit, o policy.Options, problem string) {
	if name, problem = PolicyName(args[2]); problem != "" {
		return name, limit, o, problem
	}
	problem = policyWords.Read(args[4:], func(option string, _ []byte) string {
		switch option {
		case "NX":
			o.IfAbsent = true
		case "XX":
			o.IfThere = true
		case "RESET":
			o.Reset = true
		}
		if o.IfAbsent && o.IfThere {
			return argument.ErrSyntax
		}
		return ""
	})
	if problem == "" {
		limit, problem = argument.ParseLiteral(args[3], logMax)
	}
	return name, limit, o, problem
}

// policySet goes on when its client has gone, as do the other changes of policies and rules.
func (f family) policySet(_ context.Context, c *command.Call, reply func(func(*command.Call))) {
	s := f.server()
	name, limit, o, problem := parsePolicySet(c.Args, s.LogMax)
	if problem != "" {
		done(reply).refuse(problem)
		return
	}
	s.Store.SetPolicy(name, limit, o, func(set bool, err error) {
		done(reply).changed(set, err, fmt.Sprintf(ErrTooManyPolicies, policy.MaxPolicies))
	})
}

func (f family) policyGet(c *command.Call) {
	s := f.server()
	if p := s.InForce.PolicyNamed(strings.TrimPrefix(string(c.Args[2]), "@")); p != nil {
		c.String(p.Limit.String())
	} else if err := s.Store.PoliciesUnknown(); err != nil {
		c.Error(argument.ErrStoreDown, err)
	} else {
		c.Null()
	}
}

func (f family) policyDel(_ context.Context, c *command.Call, reply func(func(*command.Call))) {
	f.server().Store.DeletePolicy(strings.TrimPrefix(string(c.Args[2]), "@"), func(was bool, err error) {
		done(reply).changed(was, err, "")
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
	c.Map(len(found))
	for _, p := range found {
		c.Pair(p.Name, p.Limit.String())
	}
}
