package store

import (
	"bytes"

	"celld/cell/lease"
)

// The first key of a Take leads to the others: its lease has links, which hold their names. So a command may reach keys that it does not
// name. Its caller needs the same right to them, and Right.Reach is the one place that asks for it. Those who ask are Linked, for what
// ends or renews a lease; a repeat, which hands out a lease that was taken before; and LimitState.Reach, for what shows or writes a state.

// Right says whether a caller may read or write a key, or both. nil: it may do everything with any. It is called under locks, so it must
// be quick and must not use the store.
type Right func(key []byte, reads, writes bool) bool

// NoRightError reports a key that a lease leads to, and to which the caller has no right. Nothing has changed.
type NoRightError struct{ Key []byte }

func (e *NoRightError) Error() string { return "no right to a key that a lease leads to" }

// Reach returns a *NoRightError if the caller lacks a right to one of the keys.
func (may Right) Reach(keys [][]byte, reads, writes bool) error {
	if may == nil {
		return nil
	}
	for _, key := range keys {
		if !may(key, reads, writes) {
			return &NoRightError{bytes.Clone(key)}
		}
	}
	return nil
}

// Reach returns a *NoRightError if the caller lacks a right to one of the keys that the leases of a state lead to, or another error if
// they do not say clearly where they lead.
func (l *LimitState) Reach(may Right, reads, writes bool) error {
	if may == nil || !l.Limit.HoldsLeases() {
		return nil
	}
	for names, whole := range l.State.Leases().AllLinks {
		keys, readable := lease.NamesIn(names)
		if !whole || !readable {
			return ErrField
		}
		if err := may.Reach(keys, reads, writes); err != nil {
			return err
		}
	}
	return nil
}
