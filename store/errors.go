package store

import (
	"errors"
	"fmt"

	"celld/cell"
)

// ErrFull reports that there is no room for a new key or for a limit that grows, and that nothing has changed. Either the store
// is full and NoEviction is set, or the change alone is over MaxKeys or MaxBytes.
var ErrFull = errors.New("store is full")

// ErrFullOfKeys is an ErrFull where MaxKeys is the bound.
var ErrFullOfKeys = fmt.Errorf("%w: of keys", ErrFull)

// ErrWrongType reports a key that holds the other kind. Nothing has changed.
var ErrWrongType = errors.New("the key holds another kind of value")

// Errors of Take, beside ErrFull and ErrWrongType. Nothing has changed.
var (
	ErrTooManyLimits = errors.New("too many limits under one key")
	ErrTwoLimits     = errors.New("two limits that share their state")
)

// ErrTooMuch reports a forced call that a state cannot hold, see cell.Limit.Holds. Nothing has changed.
var ErrTooMuch = errors.New("nothing was taken: a limit counts to 9007199254740991, and flows back in 292 years at most")

// Errors of Take on Terms. Nothing was taken, and nobody waits.
var (
	ErrNotBookable    = errors.New("a limit that cannot be booked ahead")
	ErrTooManyWaiters = errors.New("too many callers wait already")
)

// Errors of a Take that leases. Nothing has changed.
var (
	ErrNoLease       = errors.New("there is no lease")             // Bound or Name, and neither LeaseNS nor conc
	ErrTooManyLeases = errors.New("too many leases under one key") // more than lease.Max of one limit
)

// NoNameError reports a lease that holds nothing of the limits with a name. It has not ended.
type NoNameError struct {
	Name cell.Name
	Held []cell.Name // of which it does
}

func (e *NoNameError) Error() string {
	text := "the lease holds nothing of '" + e.Name.String() + "'"
	for i, name := range e.Held {
		if i == 0 {
			text += ", but of "
		} else {
			text += " and "
		}
		text += name.String()
	}
	return text
}

// ErrRefused is a reason for Leave that is no error to the caller, which is answered as if denied.
var ErrRefused = errors.New("refused")

// ErrField reports a text that is not a limit and its state.
var ErrField = errors.New("not a limit and its state")
