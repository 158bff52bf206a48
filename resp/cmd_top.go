package resp

import (
	"bytes"
	"strings"

	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/sketch"
	"celld/store/policy"
)

// literalsWord names the limits that have no policy. A policy of that name is written with its @.
const literalsWord = "literals"

// policyNamed reads a policy's name, with or without its @. The policy of the word for literals is nil. It also returns the text of an
// error, or "".
func (s *Session) policyNamed(arg []byte) (p *policy.Policy, problem string) {
	if string(arg) == literalsWord {
		return nil, ""
	}
	if p = s.srv.store.PolicyNamed(strings.TrimPrefix(string(arg), "@")); p == nil {
		return nil, s.srv.noPolicy(bytes.TrimPrefix(arg, []byte("@")))
	}
	return p, ""
}

// cmdTop is CL.TOP [n] [policy], or CL.TOP RESET. One word is n if it is a number.
func cmdTop(s *Session, args [][]byte) {
	args = args[1:]
	if len(args) == 1 && strings.EqualFold(string(args[0]), "reset") {
		s.srv.denied.Reset()
		s.replyOK()
		return
	}
	n := int64(10)
	if len(args) > 0 {
		given, ok := command.ParseInt(args[0])
		switch {
		case ok && (given < 1 || given > sketch.Kept):
			s.replyError(errNotBetween, 1, sketch.Kept)
			return
		case ok:
			n, args = given, args[1:]
		case len(args) > 1:
			s.replyError(errNotInteger)
			return
		}
	}
	if len(args) > 1 {
		s.replyError(errSyntax)
		return
	}
	of := decisions.Any
	if len(args) == 1 {
		p, problem := s.policyNamed(args[0])
		if problem != "" {
			s.replyError("%s", problem)
			return
		}
		id := uint32(0)
		if p != nil {
			id = p.ID
		}
		of = func(policy uint32) bool { return policy == id }
	}
	list := s.srv.denied.Most(int(n), of)
	s.replyArray(len(list))
	for _, d := range list {
		s.replyArray(2)
		s.replyString(d.Key)
		s.replyInt(d.Count)
	}
}
