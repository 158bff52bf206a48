// Package settings keeps policies and rules on the engine, for all instances. It knows no states of limits.
//
//	s := settings.New(options)
//	s.Start()                                // the engine's are in options.Policies now, if it answers
//	s.SetPolicy(name, limit, o, done)        // on the engine, then here; elsewhere within a second
//	epoch := s.EpochOf(p)                    // states of the policy under another are void
//
// # How a change reaches all instances
//
// Policies are in one hash on the engine, rules in another. hash.change in hash.go runs a script that changes the hash and raises its
// version. Every 500 ms Settings.poll in settings.go looks at both. If a version has changed, hash.load in hash.go gets all of that hash.
package settings
