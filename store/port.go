package store

import (
	"context"

	"celld/cell"
	"celld/store/policy"
)

// Store is all that a server needs of a store. In package memory, keys are in the process, and methods return with the answer. In package
// remote, keys are on an engine, and the answer comes later.
type Store interface {
	Limiter
	Leases
	policy.Keeper

	// InProcess reports whether the keys are in the process. If not, a command must open the keys that it names.
	InProcess() bool

	// Open reads keys, and then wakes w, once, from any goroutine.
	Open(keys [][]byte, o OpenOptions, w Waker) Tx

	Away() error // why it does not answer; nil: it does
	Facts() Facts
	AheadOf(c *Call) int64 // how many units of its key this process has taken ahead of calls, and holds

	// Drain is called before a server stops. It returns a function that waits for all changes that no caller waits for. That returns false
	// if ctx ends before.
	Drain(ctx context.Context) (drained func() bool)
}

// Leases ends waits, and gives back what connections held that have gone. Nobody needs the outcome: Release and GiveBack may return before
// they are done, as if they had found what they end.
type Leases interface {
	// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited. nil: its caller has
	// gone, so it is not answered. ErrRefused: it is answered as if denied. Any other error becomes its Err.
	Leave(r *TakeRequest, why error) bool

	Release(key []byte, id int64, a Access) (ended bool, err error)

	// GiveBack gives back what a call has taken, except what has flowed back by itself since. takenNS is cell.Limit.TakenNS of it; 0: all
	// flows back now.
	GiveBack(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, a Access) (given int64, err error)

	SetMaxWaiters(n int64)            // 0 or less: 10,000. Those who wait already stay
	Waiting() (callers, waited int64) // how many wait, and for how many keys
	WaitingFor(c *Call) int64         // how many of these wait for the state of a call
}

// NamedCost is a cost of the limits with a name.
type NamedCost struct {
	Name cell.Name
	N    int64 // 0..cell.MaxCost
}

// Kept is an n of Settle.
const Kept = -1

// OpenOptions say what keys are opened for.
type OpenOptions struct {
	Leases bool  // only for their leases: while an engine is away, the table that decides in its place may hold them
	NowNS  int64 // limit time, for keys in the process
}

// Tx is a transaction on the keys that were opened. They are changed as keys in memory are. Commit stores what has changed, unless others
// have changed a key since it was read.
type Tx interface {
	Keys() Keys
	TimeNS() int64 // the store's time when the keys were read, Unix ns
	Err() error    // once woken: nothing was read, or stored

	// Commit is done at once if nothing has changed. Otherwise it wakes w when it is done. After a Conflict, the keys are read anew: the
	// caller may change these, and commit again.
	Commit(w Waker) (done bool)
	Conflict() bool

	// Foreign is the type of a key that celld has not written.
	Foreign(key []byte) (kind string, foreign bool)

	Close()
}

// Keys are keys and their states. Policies and rules are not among them.
type Keys interface {
	Limiter

	Get(key []byte, a Access) (Value, bool)

	// Update gives fn what a key holds. If put, the key is to hold what fn returns; a Value that is over already, as the zero one is,
	// deletes it.
	Update(key []byte, a Access, fn func(old Value, ok bool) (st Value, put bool)) error
	Delete(key []byte, nowNS int64) bool
	Rename(from, to []byte, a Access) (there bool, err error)
	RenameNew(from, to []byte, a Access) (there, moved bool, err error)
	Copy(from, to []byte, replace bool, a Access) (copied bool, err error)
	IdleNS(key []byte, nowNS int64) (int64, bool)
	KeyBytes(key []byte, nowNS int64) (int64, bool)

	// Limits calls fn for each limit of a key. ParseField and PutFields write limits, as HSET names them.
	Limits(key []byte, a Access, fn func(*LimitState)) (bool, error)
	ParseField(name, text string) (Field, error)
	PutFields(key []byte, fields []Field, apart bool, a Access) (added int, err error)

	// The key of a lease is the first of the Take that was granted. Settle ends one whose true cost was n, and of limits with a name what
	// of says. Those with another name keep what they took, and with an n of Kept those without one as well. The errors are a
	// *NoRightError and, of Settle, ErrTooMuch and a *NoNameError.
	Renew(key []byte, id, ns int64, a Access) (renewed bool, err error)
	Release(key []byte, id int64, a Access) (ended bool, err error)
	Settle(key []byte, id, n int64, a Access, of ...NamedCost) (ended bool, err error)

	// GiveSome gives back a part of n, and reports whether there is more to give back.
	GiveSome(key []byte, l *cell.Limit, p *policy.Limit, n int64, a Access) (given int64, more bool, err error)

	// All keys, where none is named.
	Len(nowNS int64) int
	Random(nowNS int64) (string, bool)
	Scan(cursor uint64, count int, nowNS int64, fn func(key string, st Value)) (next uint64)
	Flush()

	WallNS(nowNS int64) int64
}
