package remote

import "sync/atomic"

// Stats count what a Store does.
type Stats struct {
	Requests        atomic.Int64 // commands sent to the engine, each of which may decide many calls
	Failures        atomic.Int64 // requests that it has not answered, or with an error that says it cannot
	Timeouts        atomic.Int64 // of these, those that took too long
	SetNew          atomic.Int64 // keys taken by SET NX GET
	SetNewRefused   atomic.Int64 // of these, those in use
	Scripts         atomic.Int64 // scripts that decide on buckets
	Expected        atomic.Int64 // of these, those that found the TAT that was expected
	ExpectedMissed  atomic.Int64 // those that found another
	Changes         atomic.Int64 // decisions by package store
	Conflicts       atomic.Int64 // of these, those decided again
	DenialsAnswered atomic.Int64 // denied without asking
	DecidedWithout  atomic.Int64 // calls decided while the engine did not: FailAllow, FailDeny, FailLocal
	Refused         atomic.Int64 // calls answered with an error then: FailError
}

// Stats are the counters, which go on.
func (s *Store) Stats() *Stats { return &s.stats }
