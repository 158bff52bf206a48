package limit

import (
	"slices"
	"strings"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/decisions"
	"celld/store/policy"
)

// top is CL.TOP [n] [policy], or CL.TOP RESET. One word is n if it is a number.
func (f family) top(c *command.Call) {
	s, args := f.server(), c.Args[1:]
	if len(args) > 0 && strings.EqualFold(string(args[0]), "reset") {
		if len(args) > 1 {
			c.Error(argument.ErrSyntax)
			return
		}
		s.Denied.Reset()
		c.OK()
		return
	}
	if isHelp(args) {
		c.Help()
		return
	}
	n := int64(10)
	if len(args) > 0 {
		given, ok := argument.ParseInt(args[0])
		switch {
		case ok && (given < 1 || given > decisions.MostTop):
			c.Error(argument.ErrNotBetween, 1, decisions.MostTop)
			return
		case ok:
			n, args = given, args[1:]
		case len(args) > 1:
			c.Error(argument.ErrNotInteger)
			return
		}
	}
	if len(args) > 1 {
		c.Error(argument.ErrSyntax)
		return
	}
	of := decisions.Any
	if len(args) == 1 {
		p, problem := s.named(args[0])
		if problem != "" {
			c.Error("%s", problem)
			return
		}
		of = func(policy uint32) bool { return policy == 0 }
		if p != nil {
			of = func(id uint32) bool {
				return slices.ContainsFunc(p.Limits, func(l *policy.Limit) bool { return l.ID == id })
			}
		}
	}
	list := s.Denied.Most(int(n), of)
	c.Array(len(list))
	for _, d := range list {
		c.Array(2)
		c.String(d.Key)
		c.Int(d.Count)
	}
}

// stats is CL.STATS [policy], or CL.STATS RESET.
func (f family) stats(c *command.Call) {
	s := f.server()
	switch {
	case len(c.Args) > 2:
		c.Error(argument.ErrSyntax)
	case len(c.Args) == 1:
		s.allStats(c)
	case strings.EqualFold(string(c.Args[1]), "reset"):
		s.Decisions.Reset()
		c.OK()
	case isHelp(c.Args[1:]):
		c.Help()
	default:
		switch p, problem := s.named(c.Args[1]); {
		case problem != "":
			c.Error("%s", problem)
		case p == nil:
			replyCounts(c, s.Decisions.LiteralsSinceReset(), nil)
		default:
			n, bound := s.Decisions.SinceReset(p.Name)
			replyCounts(c, n, bound)
		}
	}
}

// isHelp reports whether somebody asks how to use a command. A policy of that name has its @.
func isHelp(args [][]byte) bool { return len(args) == 1 && strings.EqualFold(string(args[0]), "help") }

// allStats answers with a map of each policy's map, and that of literals. A policy is named as in CL.POLICY LIST; only one that has
// the name of the literals' row has its @, as it must where one asks for it.
func (s *Server) allStats(c *command.Call) {
	policies := s.InForce.Policies()
	c.Map(1 + len(policies))
	c.String(literalsWord)
	replyCounts(c, s.Decisions.LiteralsSinceReset(), nil)
	for _, p := range policies {
		name := p.Name
		if name == literalsWord {
			name = "@" + name
		}
		c.String(name)
		n, bound := s.Decisions.SinceReset(p.Name)
		replyCounts(c, n, bound)
	}
}

// replyCounts answers with the counts of a policy and, by its limits' names, how often each has bound.
func replyCounts(c *command.Call, n decisions.Counts, bound []decisions.Bound) {
	c.Map(len(decisions.Sums) + 1)
	for i := range decisions.Sums {
		sum := &decisions.Sums[i]
		c.Field(sum.Name, sum.Of(&n))
	}
	c.String("bound_by")
	c.Map(len(bound))
	for _, one := range bound {
		c.Field(one.Limit, one.Calls)
	}
}
