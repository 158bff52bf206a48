// Package settings keeps policies and rules on the engine, for all instances.
//
//	s := settings.New(options)
//	s.Start()                                // the engine's are in options.Policies now, if it answers
//	s.SetPolicy(name, limit, o, done)        // on the engine, then here; elsewhere within a second
//	epoch := s.EpochOf(p)                    // states of the policy under another are void
package settings
