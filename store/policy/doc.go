// Package policy keeps policies, which are limits with a name, and rules, which allow or deny keys before any limit decides.
//
//	var set policy.Set
//	_, err := set.SetPolicy("api", limit, policy.Options{})  // ErrTooMany
//	p := set.Policy([]byte("api:cust42"))                    // falls back to api
//	_, err = set.PutRule(policy.Rule{Deny: true, Pattern: "bad:*"}, now)
//	r := set.Rule(key, nil, now)                             // nil: ask the limit
//
// A Set is what a process goes by. A Keeper, which each store is, changes it for all that share it.
//
// It knows no states of keys: a store keeps those under a policy's ID, and asks for the rule of a key. To files, policies and rules are
// settings: a kind, a name and a text. DrainSettings tells which have changed.
package policy

// Set is policies and rules. The zero value is an empty one. Its methods may be called from any goroutine; they take times as
// the store's do, in Unix nanoseconds of limit time.
type Set struct {
	Journal bool   // collect changes for DrainSettings; set before anything else
	Changed func() // called after each change, without a lock of the Set; set before anything else. nil: nobody is told

	policies policies
	rules    rules
	ids      ids
	changes  changes
}

// notify calls Changed.
func (s *Set) notify() {
	if s.Changed != nil {
		s.Changed()
	}
}
