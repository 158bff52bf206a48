package resp

import (
	"context"
	"errors"
	"strings"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/glob"
	"celld/store/policy"
)

func policyRows() []*command.Row {
	return []*command.Row{
		{Name: "set", Arity: -4, Flags: command.Write | command.DenyOOM, Usage: "name limit [NX|XX] [RESET]", Summary: "Sets the limit of a policy.", Group: command.GroupLimit, Run: answersNow(askPolicySet), Far: farOnSession(askPolicySet)},
		{Name: "get", Arity: 3, Flags: command.Readonly, Usage: "name", Summary: "Returns the limit of a policy.", Group: command.GroupLimit, Run: onSession(cmdPolicyGet)},
		{Name: "del", Arity: 3, Flags: command.Write, Usage: "name", Summary: "Removes a policy and what was used of it.", Group: command.GroupLimit, Run: answersNow(askPolicyDel), Far: farOnSession(askPolicyDel)},
		{Name: "list", Arity: -2, Flags: command.Readonly, Usage: "[pattern]", Summary: "Returns the policies and their limits.", Group: command.GroupLimit, Cost: "O(N) where N is the number of policies", Run: onSession(cmdPolicyList), Far: farOnSession(listAside(cmdPolicyList)), Aside: true},
	}
}

// maxPolicyName bounds the names of all policies to 8 MB.
const maxPolicyName = 128

// policyName reads a name, with or without the @ before it.
func policyName(arg []byte) (name, problem string) {
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
		return "", formatError(errPolicyColon, shortText([]byte(name)))
	}
	return name, ""
}

// parsePolicySet reads name limit [NX|XX] [RESET].
func (s *Session) parsePolicySet(args [][]byte) (name string, limit cell.Limit, o policy.Options, problem string) {
	if name, problem = policyName(args[2]); problem != "" {
		return name, limit, o, problem
	}
	for _, arg := range args[4:] {
		switch strings.ToUpper(string(arg)) {
		case "NX":
			o.IfAbsent = true
		case "XX":
			o.IfThere = true
		case "RESET":
			o.Reset = true
		default:
			return name, limit, o, errSyntax
		}
	}
	if o.IfAbsent && o.IfThere {
		return name, limit, o, errSyntax
	}
	limit, problem = parseLiteral(args[3], s.srv.cfg.LogMax.Get())
	return name, limit, o, problem
}

// askPolicySet goes on when its client has gone, as do the other changes of policies and rules.
func askPolicySet(_ context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	name, limit, o, problem := s.parsePolicySet(args)
	if problem != "" {
		done(func(s *Session) { s.replyError("%s", problem) })
		return
	}
	s.srv.keep.SetPolicy(name, limit, o, func(set bool, err error) {
		done(func(s *Session) { s.replySetting(set, err, formatError(errTooManyPolicies, policy.MaxPolicies)) })
	})
}

// replySetting replies to a change of a policy or a rule.
func (s *Session) replySetting(did bool, err error, tooMany string) {
	switch {
	case errors.Is(err, policy.ErrTooMany):
		s.replyError("%s", tooMany)
	case err != nil:
		s.replyStoreError(err)
	default:
		s.replyBool(did)
	}
}

func cmdPolicyGet(s *Session, args [][]byte) {
	if p := s.srv.store.PolicyNamed(strings.TrimPrefix(string(args[2]), "@")); p != nil {
		s.replyString(p.Limit.String())
	} else if err := s.srv.keep.PoliciesUnknown(); err != nil {
		s.replyError(errStoreDown, err)
	} else {
		s.replyNull()
	}
}

func askPolicyDel(_ context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	s.srv.keep.DeletePolicy(strings.TrimPrefix(string(args[2]), "@"), func(was bool, err error) {
		done(func(s *Session) { s.replySetting(was, err, "") })
	})
}

// chosen reads the pattern of a list, if it has one, and returns what says which names match.
func (s *Session) chosen(pattern [][]byte) (keep func(name string) bool, ok bool) {
	if len(pattern) == 0 {
		return func(string) bool { return true }, true
	}
	g, ok := glob.Compile(pattern[0], false)
	if !ok {
		s.replyError(errPatternLong, glob.MaxWild)
		return nil, false
	}
	return func(name string) bool { return g.Match([]byte(name)) }, true
}

func cmdPolicyList(s *Session, args [][]byte) {
	if len(args) > 3 {
		s.replyError(errSyntax)
		return
	}
	keep, ok := s.chosen(args[2:])
	if !ok {
		return
	}
	var found []*policy.Policy
	for _, p := range s.srv.store.Policies() {
		if keep(p.Name) {
			found = append(found, p)
		}
	}
	s.replyMap(len(found))
	for _, p := range found {
		s.replyPair(p.Name, p.Limit.String())
	}
}
