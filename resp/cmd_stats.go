package resp

import (
	"strings"

	"celld/resp/decisions"
)

// cmdStats is CL.STATS [policy], or CL.STATS RESET.
func cmdStats(s *Session, args [][]byte) {
	s.countDecisions()
	replyStats(s, args)
}

// replyStats needs no more of the session than where to reply.
func replyStats(s *Session, args [][]byte) {
	switch {
	case len(args) > 2:
		s.replyError(errSyntax)
	case len(args) == 1:
		s.replyAllStats()
	case strings.EqualFold(string(args[1]), "reset"):
		s.srv.decisions.Reset()
		s.replyOK()
	default:
		switch p, problem := s.policyNamed(args[1]); {
		case problem != "":
			s.replyError("%s", problem)
		case p == nil:
			s.replyDecisions(s.srv.decisions.LiteralsSinceReset())
		default:
			s.replyDecisions(s.srv.decisions.SinceReset(p.Name))
		}
	}
}

// replyAllStats answers with a map of each policy's map, and that of literals. A policy is named as in CL.POLICY LIST; only one that has
// the name of the literals' row has its @, as it must where one asks for it.
func (s *Session) replyAllStats() {
	policies := s.srv.store.Policies()
	s.replyMap(1 + len(policies))
	s.replyString(literalsWord)
	s.replyDecisions(s.srv.decisions.LiteralsSinceReset())
	for _, p := range policies {
		name := p.Name
		if name == literalsWord {
			name = "@" + name
		}
		s.replyString(name)
		s.replyDecisions(s.srv.decisions.SinceReset(p.Name))
	}
}

func (s *Session) replyDecisions(n decisions.Counts) {
	s.replyMap(7)
	s.replyField("allowed", n[decisions.ThrottleAllowed]+n[decisions.TakeAllowed])
	s.replyField("limited", n[decisions.ThrottleLimited]+n[decisions.TakeLimited])
	s.replyField("blocked", n[decisions.Blocked])
	s.replyField("rule_denied", n[decisions.RuleDenied])
	s.replyField("shadow_limited", n[decisions.ShadowLimited])
	s.replyField("shadow_allowed", n[decisions.ShadowAllowed])
	s.replyField("partly_granted", n[decisions.PartlyGranted])
}
