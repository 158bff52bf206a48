// Package check says what is wrong with the history of a simulation. Its rules are those of docs/reference/limits.md,
// docs/reference/waiting.md and docs/reference/files.md; the arithmetic is package cell's.
//
//	faults, undecided := check.Faults(history)
package check

import (
	"iter"
	"slices"

	"celld/cell"
)

// Kind is what a call asks.
type Kind int

const (
	Throttle Kind = iota // CL.THROTTLE with Burst
	Take                 // CL.TAKE with Limit and Others
	Peek                 // CL.TAKE ... PEEK
	Del                  // DEL; Limit and Others are the key's
	Acquire              // CL.TAKE with algo=conc, whose answer ends in the id of the lease
	Release              // CL.RELEASE of Lease
	Renew                // CL.RENEW of Lease, for WaitNS from then on
	Force                // CL.TAKE ... FORCE
	Reserve              // CL.TAKE ... RESERVE, which waits for WaitNS at most; it has one limit
)

// Call is one command of a client, with what it was answered.
type Call struct {
	Client int
	Server int // that it was sent to
	Key    string
	Kind   Kind
	Limit  cell.Limit   `json:"-"`
	Others []cell.Limit `json:"-"` // which the call asks for together with Limit, two at most
	Burst  [3]int64     // max_burst, count, period
	Cost   int64
	Costs  []int64 // of limits with names, in the order of all; -1: Cost. Shorter: the rest take Cost

	Began, Ended int64 // numbers of events of the simulation; Ended of a call without an answer: when it could not be decided any more

	// The instants at which it may have been decided, in Unix ns: those at which the server has read its clock.
	Times []int64
	// On an engine these are not known. It was decided between these, in Unix ns.
	FromNS, ToNS int64
	Bounded      bool  // it may have been decided at another instant than Times: it is for Bounds, and so are all calls of its key
	Waits        bool  // those who come later are denied as if it had taken already, until it has its answer
	WaitNS       int64 // for how long at most
	First        bool  // it arrives at once, and its answer is read at once
	Lease        int64 // that a Release ends, or a Renew prolongs

	// Of an Acquire:
	ID        string // makes a repeat harmless; "": it has none
	Bound     bool   // to its connection
	BoundNS   int64  // when the connection may have ended; 0: it has not
	UnboundNS int64  // when it had ended

	Answer []int64 // nil: none has come, or Error
	Error  string  // celld's; "": none
	Maybe  bool    // the error says that the call may have been counted
	Text   string  // of the command, for people
}

// Crash is the end of a server's life, after which it reads its files.
type Crash struct {
	At   int64 // the number of the event
	AtNS int64 // Unix ns
	// ForgetsNS is how old changes may be that are lost; 0: only those that nobody was answered.
	ForgetsNS int64
	All       bool // nothing is kept
	Loose     bool // what is kept is not on the disk yet, so a later one may forget more
}

// History is what has happened.
type History struct {
	Calls   []Call
	Crashes []Crash
	Losses  []Loss // of an engine

	Stalls    bool  // goroutines of the server stand still: one may decide by an earlier look at the clock than the one before it
	Evicts    bool  // keys give way to new ones, unless somebody waits for them or they have leases
	ArrivesNS int64 // how long a call is under way at most
	WakesNS   int64 // how soon one who waits takes what has come back; 0: nobody knows
	AheadNS   int64 // how long units last that servers have taken ahead; 0: none are
	LastsNS   int64 // how long a lease may outlive its end, or its connection: others may have been told to come again then
}

// Loss is a time in which what was granted may have been forgotten: a crash without files, or of an engine a failover or an eviction.
type Loss struct {
	Began, Ended int64 // numbers of events
	FromNS       int64 // when it began, Unix ns
}

// Faults is all that is wrong with a history, and how many keys have too many orders to try.
func Faults(h History) (faults []string, undecided int) {
	faults, undecided = Limits(h)
	return slices.Concat(Bounds(h), Leases(h), faults), undecided
}

// aheadNS is how long after it was decided a call goes ahead, at most.
func (c *Call) aheadNS() int64 {
	switch {
	case c.Kind != Reserve:
		return 0
	case c.Answer == nil:
		return c.WaitNS
	}
	return c.Answer[6] * 1e6
}

// Granted reports whether the call was told to go ahead.
func (c *Call) Granted() bool { return len(c.Answer) > 0 && c.Answer[0] == 0 && c.Kind != Peek }

// byKey yields the calls of each key that a checker looks at, in the order of keys.
func (h *History) byKey(looks func(*Call) bool) iter.Seq2[string, []Call] {
	byKey, keys := map[string][]Call{}, []string(nil)
	for _, c := range h.Calls {
		if !looks(&c) {
			continue
		}
		if byKey[c.Key] == nil {
			keys = append(keys, c.Key)
		}
		byKey[c.Key] = append(byKey[c.Key], c)
	}
	slices.Sort(keys)
	return func(yield func(string, []Call) bool) {
		for _, key := range keys {
			if !yield(key, byKey[key]) {
				return
			}
		}
	}
}
