package resp

import (
	"context"
	"math"
	"net/netip"
	"strings"

	"celld/resp/command"
	"celld/store/policy"
)

func ruleRows() []*command.Row {
	return []*command.Row{
		{Name: "add", Arity: -4, Flags: command.Write | command.DenyOOM, Usage: "ALLOW|DENY pattern [CIDR net] [EX seconds]", Summary: "Always allows or always denies keys, whatever their limits.", Group: command.GroupLimit, Run: answersNow(askRuleAdd), Far: farOnSession(askRuleAdd)},
		{Name: "del", Arity: -4, Flags: command.Write, Usage: "ALLOW|DENY pattern [CIDR net]", Summary: "Removes a rule.", Group: command.GroupLimit, Run: answersNow(askRuleDel), Far: farOnSession(askRuleDel)},
		{Name: "list", Arity: -2, Flags: command.Readonly, Usage: "[pattern]", Summary: "Returns the rules: verdict, pattern, net, seconds left.", Group: command.GroupLimit, Cost: "O(N) where N is the number of rules", Run: onSession(cmdRuleList), Far: farOnSession(listAside(cmdRuleList)), Aside: true},
	}
}

// maxRulePattern bounds the patterns of all rules to 17 MB.
const maxRulePattern = 256

// parseRule reads ALLOW|DENY pattern [CIDR net] [EX seconds].
func (s *Session) parseRule(args [][]byte, expires bool) (r policy.Rule, problem string) {
	switch strings.ToUpper(string(args[0])) {
	case "ALLOW":
	case "DENY":
		r.Deny = true
	default:
		return r, errSyntax
	}
	if len(args[1]) > maxRulePattern {
		return r, formatError(errRulePattern, maxRulePattern)
	}
	r.Pattern = string(args[1])
	for rest := args[2:]; len(rest) > 0; rest = rest[2:] {
		option := strings.ToUpper(string(rest[0]))
		switch {
		case len(rest) == 1:
			return r, errSyntax
		case option == "CIDR" && !r.Net.IsValid():
			var err error
			if r.Net, err = netip.ParsePrefix(string(rest[1])); err != nil {
				return r, formatError(errRuleNet, shortText(rest[1]))
			}
			if strings.HasSuffix(r.Pattern, "*") {
				return r, errRuleStar
			}
		case option == "EX" && expires && r.UntilNS == 0:
			seconds, ok := command.ParseInt(rest[1])
			if !ok {
				return r, errNotInteger
			}
			if seconds <= 0 || seconds >= (math.MaxInt64-s.nowNS)/1e9 { // files hold the end in ms, rounded up
				return r, formatError(errInvalidExpire, "cl.rule")
			}
			r.UntilNS = s.nowNS + seconds*1e9
		default:
			return r, errSyntax
		}
	}
	return r, ""
}

// askRuleAdd: a rule ends by the store's time.
func askRuleAdd(_ context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	r, problem := s.parseRule(args[2:], true)
	if problem != "" {
		done(func(s *Session) { s.replyError("%s", problem) })
		return
	}
	s.srv.keep.PutRule(r, s.nowNS, func(added bool, err error) {
		done(func(s *Session) { s.replySetting(added, err, formatError(errTooManyRules, policy.MaxRules)) })
	})
}

func askRuleDel(_ context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	r, problem := s.parseRule(args[2:], false)
	if problem != "" {
		done(func(s *Session) { s.replyError("%s", problem) })
		return
	}
	s.srv.keep.DeleteRule(r, s.nowNS, func(held bool, err error) {
		done(func(s *Session) { s.replySetting(held, err, "") })
	})
}

func cmdRuleList(s *Session, args [][]byte) {
	if len(args) > 3 {
		s.replyError(errSyntax)
		return
	}
	keep, ok := s.chosen(args[2:])
	if !ok {
		return
	}
	var found []policy.Rule
	for _, r := range s.srv.store.Rules(s.nowNS) {
		if keep(r.Pattern) {
			found = append(found, r)
		}
	}
	s.replyArray(len(found))
	for _, r := range found {
		verdict, net, left := "ALLOW", "", int64(-1)
		if r.Deny {
			verdict = "DENY"
		}
		if r.Net.IsValid() {
			net = r.Net.String()
		}
		if r.UntilNS != 0 {
			left = (r.UntilNS - s.nowNS + 999_999_999) / 1e9
		}
		s.replyArray(4)
		s.replyString(verdict)
		s.replyString(r.Pattern)
		s.replyString(net)
		s.replyInt(left)
	}
}
