package policy

import "celld/cell"

// Keeper changes policies and rules where they are kept, and then in the process, whose Set holds those in force. A store is one. Each
// method calls done once, before it returns or later from any goroutine; done must not block. Its error is ErrTooMany or one of the
// store's.
type Keeper interface {
	SetPolicy(name string, limits []cell.Limit, o Options, done func(set bool, err error))
	DeletePolicy(name string, done func(was bool, err error))

	// EndPolicies ends temporary policies that are over, in the process: see Set.EndPolicies.
	EndPolicies(nowNS int64)

	PutRule(r Rule, nowNS int64, done func(added bool, err error)) // r.UntilNS is by the clock of nowNS; the store has its own
	DeleteRule(r Rule, nowNS int64, done func(held bool, err error))

	// KeepPolicies sets the policies of a file, which are in force in the process at once, or after temporary ones. The error is
	// ErrTooMany, for the policy whose place in the list is returned. AwaitPolicies waits until the store has stored or refused them,
	// for a time-out at most. With only, it sets only those of which that is true.
	KeepPolicies(list []*Policy, only func(name string) bool) (refused int, err error)
	AwaitPolicies()

	// KeepRules is KeepPolicies for the rules of a file, which hold for ever.
	KeepRules(list []Rule, only func(name string) bool) (refused int, err error)

	// PoliciesUnknown says why there may be policies or rules that the process does not know.
	PoliciesUnknown() error
}
