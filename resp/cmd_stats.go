package resp

import "strings"

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
		s.srv.decisions.reset()
		s.replyOK()
	default:
		switch p, problem := s.policyNamed(args[1]); {
		case problem != "":
			s.replyError("%s", problem)
		case p == nil:
			s.replyDecisions(s.srv.decisions.literalsSinceReset())
		default:
			s.replyDecisions(s.srv.decisions.sinceReset(p.Name))
		}
	}
}

// replyAllStats answers with a map of each policy's map, and that of literals. A policy is named as in CL.POLICY LIST; only one that has
// the name of the literals' row has its @, as it must where one asks for it.
func (s *Session) replyAllStats() {
	policies := s.srv.store.Policies()
	s.replyMap(1 + len(policies))
	s.replyString(literalsWord)
	s.replyDecisions(s.srv.decisions.literalsSinceReset())
	for _, p := range policies {
		name := p.Name
		if name == literalsWord {
			name = "@" + name
		}
		s.replyString(name)
		s.replyDecisions(s.srv.decisions.sinceReset(p.Name))
	}
}

func (s *Session) replyDecisions(n decisions) {
	s.replyMap(7)
	s.replyField("allowed", n[throttleAllowed]+n[takeAllowed])
	s.replyField("limited", n[throttleLimited]+n[takeLimited])
	s.replyField("blocked", n[blocked])
	s.replyField("rule_denied", n[ruleDenied])
	s.replyField("shadow_limited", n[shadowLimited])
	s.replyField("shadow_allowed", n[shadowAllowed])
	s.replyField("partly_granted", n[partlyGranted])
}
