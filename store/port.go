package store

import (
	"context"

	"celld/cell"
	"celld/store/policy"
)

// Store is all that a server asks of a store. Package memory has one whose keys are in the process, so that it has answered when a method
// returns. The keys of package remote's are on an engine, and it answers later.
type Store interface {
	Limiter
	Leases
	Policies
	Health

	// Here reports whether the keys are in the process. Where they are not, a command opens those that it names.
	Here() bool

	// Open reads keys, and then wakes w, once, from any goroutine.
	Open(keys [][]byte, o OpenOptions, w Waker) Tx
}

// Leases are those of calls that wait, and of connections that have gone. Nobody waits for what becomes of them: Release and Give return
// before it is done, as if there were what they ask for.
type Leases interface {
	// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited: see ErrRefused.
	Leave(r *TakeRequest, why error) bool

	Release(key []byte, id int64, a Access) (ended bool, err error)
	Give(key []byte, l *cell.Limit, policy uint32, n int64, a Access) (given int64, err error)

	SetMaxWaiters(n int64)            // 0 or less: 10,000. Those who wait already stay
	Waiting() (callers, waited int64) // how many wait, and for how many keys
}

// Policies changes policies and rules where they are kept, and then in the process, whose policy.Set has those in force. done is called
// once, before the method returns or later from any goroutine, and must not block. Its error is policy.ErrTooMany or one of the store's.
type Policies interface {
	SetPolicy(name string, l cell.Limit, o policy.Options, done func(set bool, err error))
	DeletePolicy(name string, done func(was bool, err error))
	PutRule(r policy.Rule, nowNS int64, done func(added bool, err error)) // r.UntilNS is by the clock of nowNS; the store has its own
	DeleteRule(r policy.Rule, nowNS int64, done func(held bool, err error))

	// KeepPolicies sets those of a file, which are in force in the process at once. The error is policy.ErrTooMany, for the
	// policy whose place in the list is returned. AwaitPolicies waits until the store has them, or has refused them, for a time-out at most.
	KeepPolicies(list []policy.Policy) (refused int, err error)
	AwaitPolicies()

	// PoliciesUnknown says why there may be policies of which the process does not know.
	PoliciesUnknown() error
}

// Health says how the store does.
type Health interface {
	Away() error // why it does not answer; nil: it does
	Facts() Facts

	// Drain is called before a server stops. The function that it returns waits until nothing is left of what nobody waits for, and returns
	// false when ctx has ended.
	Drain(ctx context.Context) (drained func() bool)
}

// OpenOptions say what keys are opened for.
type OpenOptions struct {
	Leases bool  // only for their leases: where an engine is away, the table that decides in its place may have them
	NowNS  int64 // limit time, by which keys in the process go
}

// Tx is a transaction on the keys that were opened. Its keys are changed as those in memory are; Commit stores what has changed, unless
// others have changed a key since it was read.
type Tx interface {
	Keys() Keys
	TimeNS() int64 // the store's time when the keys were read, Unix ns
	Err() error    // once woken: nothing was read, or stored

	// Commit is done at once where nothing has changed. Otherwise it wakes w. After a Conflict, the keys are as they are now: whoever
	// wants to goes on from there, and commits again.
	Commit(w Waker) (done bool)
	Conflict() bool

	// Foreign is the type of a key of which celld knows only that it is there.
	Foreign(key []byte) (kind string, foreign bool)

	Close()
}

// Keys are keys and their states, in reach. Those of policies and rules are not among them.
type Keys interface {
	Limiter

	Get(key []byte, a Access) (Value, bool)
	Update(key []byte, a Access, fn func(old Value, ok bool) (Value, Action)) error
	Delete(key []byte, nowNS int64) bool
	Rename(from, to []byte, a Access) (there bool, err error)
	RenameNew(from, to []byte, a Access) (there, moved bool, err error)
	Copy(from, to []byte, replace bool, a Access) (copied bool, err error)
	IdleNS(key []byte, nowNS int64) (int64, bool)
	KeyBytes(key []byte, nowNS int64) (int64, bool)

	// Limits calls fn for each limit of a key. ParseField and PutFields write them as HSET has them.
	Limits(key []byte, a Access, fn func(*LimitState)) (bool, error)
	ParseField(name, text string) (Field, error)
	PutFields(key []byte, fields Fields, apart bool, a Access) (added int, err error)

	// The key of a lease is the first of the Take that was granted. The error is a *NoRightError.
	Renew(key []byte, id, ns int64, a Access) (renewed bool, err error)
	Release(key []byte, id int64, a Access) (ended bool, err error)
	Settle(key []byte, id, n int64, a Access) (ended bool, err error)

	// GiveSome gives back a part of n. There is more to do where it reports so.
	GiveSome(key []byte, l *cell.Limit, policy uint32, n int64, a Access) (given int64, more bool, err error)

	// All keys, where none is named.
	Len(nowNS int64) int
	Random(nowNS int64) (string, bool)
	Scan(cursor uint64, count int, nowNS int64, fn func(key string, st Value)) (next uint64)
	Flush()

	WallNS(nowNS int64) int64
}
