package store

import (
	"bytes"

	"celld/cell/lease"
)

// The first key of a Take leads to the others: its lease has links, which hold their names. So a command may reach keys that it does not
// name. Its caller needs the same right to them, which Right.Reach alone checks: for commands that end or renew a lease (Linked), for a
// repeat, which hands out a lease that was taken before, and for commands that show or write a state (LimitState.Reach).

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

// Reach returns a *NoRightError if the caller lacks a right to one of the keys that the leases of a state lead to, or ErrField if
// the links are damaged.
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
