// Package policy keeps limits under names, which are policies, and rules, which let keys through or keep them out before any limit
// is asked. It knows no keys' states: a store keeps those under a policy's ID, and asks for the rule of a key.
//
//	var set policy.Set
//	_, err := set.SetPolicy("api", limit, policy.Options{})  // ErrTooMany
//	p := set.Policy([]byte("api:cust42"))                    // falls back to api
//	_, err = set.PutRule(policy.Rule{Deny: true, Pattern: "bad:*"}, now)
//	r := set.Rule(key, now)                                  // nil: ask the limit
//
// To files, both are settings: a kind, a name and a text. DrainSettings tells which have changed.
package policy

// Set is policies and rules. The zero value is an empty one. Its methods may be called from any goroutine; they take times as
// the store's do, in Unix nanoseconds of limit time.
type Set struct {
	Journal bool   // collect changes for DrainSettings; set before anything else
	Changed func() // called after each change, without any lock of the Set's; set before anything else. nil: nobody is told

	policies policies
	rules    rules
	ids      ids
	changes  changes
}

// tell tells of a change.
func (s *Set) tell() {
	if s.Changed != nil {
		s.Changed()
	}
}
