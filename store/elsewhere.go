package store

import (
	"errors"
	"time"
)

// What a Store answers, and is asked, whose keys are on an engine.

// Errors of calls that the engine was not asked about.
var (
	ErrBusy      = errors.New("too many calls wait for the engine")
	ErrCrossSlot = errors.New("keys in request don't hash to the same slot; use a hash tag such as {user1}")
	ErrNoPrefix  = errors.New("there is no prefix") // of keys that Flush is to remove
)

// DownError reports that the engine has not decided, or that nobody knows whether it has.
type DownError struct {
	Cause string
	Sent  bool // the call may have been counted
}

func (e *DownError) Error() string { return e.Cause }

// EngineError is another error of the engine's, with its code: ERR syntax error.
type EngineError struct {
	Text string
	Kind error // one that the store knows, or nil
}

func (e *EngineError) Error() string { return e.Text }
func (e *EngineError) Unwrap() error { return e.Kind }

// CommitWithin is how soon after it was read a Tx must be committed for a key that was not there.
const CommitWithin = 950 * time.Millisecond

// ScanOptions are those of SCAN over all keys.
type ScanOptions struct {
	Cursor  uint64 // 0: from the start
	Pattern string // of keys without the prefix
	Count   int64  // about how many keys are looked at
	Type    string // "": any
}

// Counts are what a Store has counted since it was opened.
type Counts struct {
	Calls             int64 // commands sent to the engine
	Failures          int64 // of these, those that it did not answer or could not serve
	Timeouts          int64 // those that it did not answer in time
	Conflicts         int64 // decisions repeated, as the key had changed meanwhile
	DenialsRemembered int64 // calls denied without asking again
	DecidedAhead      int64 // calls decided by units that were taken before
	UnitsTaken        int64 // for these
	UnitsGivenBack    int64
	UnitsEnded        int64 // unused
	DecidedWithout    int64 // by a mode other than error
	Refused           int64 // by the mode error
}
