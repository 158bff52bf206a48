package limit

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/decisions"
	"celld/resp/glob"
	"celld/store"
	"celld/store/policy"
)

// InForce are the policies and rules by which the process decides.
type InForce interface {
	PolicyNamed(name string) *policy.Policy
	Policies() []*policy.Policy
	Rules(nowNS int64) []policy.Rule
}

// Server is what the family needs of its server. A table that only names the commands asks for none.
type Server struct {
	Store     store.Store
	File      string // --policies; "": there is none
	Saved     func() // is told that SAVE has written it
	InForce   InForce
	LogMax    int64 // calls that a limit with algo=log may keep
	Decisions *decisions.Rows
	Top       *decisions.Top
	Now       func() int64 // by which Top goes
}

// family is what the handlers share.
type family struct {
	server func() Server
	saving *sync.Mutex // two that write the file at a time could leave the older policies in it
}

// Rows are the commands of the family.
func Rows(server func() Server) []*command.Row {
	f := family{server, &sync.Mutex{}}
	return []*command.Row{
		{Name: "cl.renew", Arity: 4, Flags: spec.OfLease | spec.Write | spec.Fast, Keys: spec.OneKey, Group: spec.GroupLimit, Usage: "key id ms", Summary: "Sets the end of a lease to this many ms from now.", Run: changeLease},
		{Name: "cl.release", Arity: 3, Flags: spec.OfLease | spec.Write | spec.Fast, Keys: spec.OneKey, Group: spec.GroupLimit, Usage: "key id", Summary: "Ends a lease, and gives back what it holds.", Run: changeLease},
		{Name: "cl.settle", Arity: -4, Flags: spec.OfLease | spec.Write | spec.Fast, Keys: spec.OneKey, Group: spec.GroupLimit, Usage: "key id n [OF name] [n OF name] ...", Summary: "Ends a lease whose true cost was n.", Run: changeLease},
		{Name: "cl.reset", Arity: -2, Flags: spec.Write | spec.Fast, Keys: spec.AllKeys, Access: spec.Writes, Group: spec.GroupLimit, Usage: "key ...", Summary: "Resets all limits of keys, as DEL does.", Cost: "O(N) where N is the number of keys", Run: (*command.Call).DeleteKeys},
		{Name: "cl.policy", Arity: -2, Group: spec.GroupLimit, Summary: "A container for commands on named limits.", Sub: f.policies()},
		{Name: "cl.rule", Arity: -2, Group: spec.GroupLimit, Summary: "A container for rules that always allow or always deny keys.", Sub: f.rules()},
		{Name: "cl.show", Arity: 2, Flags: spec.Readonly, Keys: spec.OneKey, Group: spec.GroupLimit, Usage: "key", Summary: "Returns the limits of a key: what is used and left of each, and who waits.", Cost: "O(N) where N is the number of limits and their leases", Run: f.show},
		{Name: "cl.top", Arity: -1, Flags: spec.Loading | spec.Audited | spec.Admin | spec.NoScript, Group: spec.GroupLimit, Usage: "[RESET|[n] [policy] [BY DENIED|CALLS|NEAR] [LAST 1m|10m|START]]", Summary: "Returns the keys that are denied most, call most, or are near to their limits, and how often.", Run: f.top},
		{Name: "cl.stats", Arity: -1, Flags: spec.Loading | spec.Audited | spec.Admin | spec.NoScript, Group: spec.GroupLimit, Usage: "[RESET|policy]", Summary: "Returns how calls were decided, for each policy. A call counts once for each policy that it names.", Cost: "O(N) where N is the number of policies", Run: func(c *command.Call) { c.List(f.stats) }},
	}
}

// change changes a policy or a rule, and answers whether there was a change. tooMany is the error where there may be no more of them.
func change(c *command.Call, tooMany string, begin func(changed func(did bool, err error))) {
	c.Later(func(_ context.Context, done func(func(*command.Call))) {
		begin(func(did bool, err error) {
			done(func(c *command.Call) {
				switch {
				case errors.Is(err, policy.ErrTooMany):
					c.Error("%s", tooMany)
				case err != nil:
					c.Fail(err)
				default:
					c.Bool(did)
				}
			})
		})
	})
}

// named reads a policy's name, with or without its @. The policy of the word for literals is nil. It also returns the text of an
// error, or "".
func (s *Server) named(arg []byte) (p *policy.Policy, problem string) {
	if string(arg) == decisions.Literals {
		return nil, ""
	}
	if p = s.InForce.PolicyNamed(strings.TrimPrefix(string(arg), "@")); p == nil {
		return nil, argument.NoPolicy(s.Store, bytes.TrimPrefix(arg, []byte("@")))
	}
	return p, ""
}

// chosen reads the pattern of a list, if it has one, and returns what says which names match.
func chosen(c *command.Call) (keep func(name string) bool, ok bool) {
	switch len(c.Args) {
	case 2:
		return func(string) bool { return true }, true
	case 3:
		g, ok := glob.Compile(c.Args[2], false)
		if !ok {
			c.Error(argument.ErrPatternLong, glob.MaxWild)
			return nil, false
		}
		return func(name string) bool { return g.Match([]byte(name)) }, true
	}
	c.Error(argument.ErrSyntax)
	return nil, false
}
