package remote

import "celld/store"

// waits are the calls with WAIT and RESERVE.
type waits struct{}

func (w *waits) init(s *Store) {}

func (s *Store) takeWaiting(r *store.TakeRequest, a store.Access, w store.Waker) bool { return true }

// pokeAll has all who wait looked at again: a policy or a rule has changed.
func (w *waits) pokeAll() {}

// waitedFor reports whether calls wait for a key.
func (s *Store) waitedFor(key string) bool { return false }
