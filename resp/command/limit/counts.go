package limit

import (
	"slices"
	"strings"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/decisions"
	"celld/store/policy"
)

// The words of CL.TOP.
var (
	topBy   = map[string]decisions.By{"DENIED": decisions.ByDenied, "CALLS": decisions.ByCalls, "NEAR": decisions.ByNear}
	topLast = map[string]decisions.Span{"1M": decisions.Minute, "10M": decisions.TenMinutes, "START": decisions.Start}
)

// top is CL.TOP [n] [policy] [BY …] [LAST …], or CL.TOP RESET. The first word is n if it is a number. A policy named BY or LAST has its @.
func (f family) top(c *command.Call) {
	s, args := f.server(), c.Args[1:]
	is := func(word string) bool { return len(args) > 0 && strings.EqualFold(string(args[0]), word) }
	switch {
	case is("reset") && len(args) > 1:
		c.Error(argument.ErrSyntax)
		return
	case is("reset"):
		s.Top.Reset()
		c.OK()
		return
	case isHelp(args):
		c.Help()
		return
	}
	n, of := int64(10), decisions.Any
	if len(args) > 0 {
		if given, ok := argument.ParseInt(args[0]); ok {
			if given < 1 || given > decisions.MostTop {
				c.Error(argument.ErrNotBetween, 1, decisions.MostTop)
				return
			}
			n, args = given, args[1:]
		}
	}
	if len(args) > 0 && !is("by") && !is("last") {
		var problem string
		if of, problem = s.under(args[0]); problem != "" {
			c.Error("%s", problem)
			return
		}
		args = args[1:]
	}
	by, last := decisions.ByDenied, decisions.Start
	for ; len(args) > 0; args = args[2:] {
		known := false
		switch {
		case len(args) == 1:
		case is("by"):
			by, known = topBy[strings.ToUpper(string(args[1]))]
		case is("last"):
			last, known = topLast[strings.ToUpper(string(args[1]))]
		}
		if !known {
			c.Error(errTop)
			return
		}
	}
	s.Top.Advance(s.Now())
	list := s.Top.Most(by, last, int(n), of)
	c.Array(len(list))
	for _, d := range list {
		c.Array(2)
		c.String(d.Key)
		c.Int(d.Count)
	}
}

// under selects the limits of a policy, or literals. It also returns the text of an error, or "".
func (s *Server) under(name []byte) (of func(id uint32) bool, problem string) {
	p, problem := s.named(name)
	switch {
	case problem != "":
		return nil, problem
	case p == nil:
		return func(id uint32) bool { return id == 0 }, ""
	}
	return func(id uint32) bool {
		return slices.ContainsFunc(p.Limits, func(l *policy.Limit) bool { return l.ID == id })
	}, ""
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
	c.String(decisions.Literals)
	replyCounts(c, s.Decisions.LiteralsSinceReset(), nil)
	for _, p := range policies {
		c.String(decisions.Shown(p.Name))
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
