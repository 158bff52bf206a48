package remote

import (
	"sync/atomic"

	"celld/store/remote/ahead"
	"celld/store/remote/failure"
	"celld/store/remote/link"
	"celld/store/remote/view"
)

// ViewCounts are view.Counts by another name, as failure has Counts, too.
type ViewCounts = view.Counts

// Stats count what a Store does.
type Stats struct {
	link.Stats
	SetNew          atomic.Int64 // keys taken by SET NX GET
	SetNewRefused   atomic.Int64 // of these, those in use
	Scripts         atomic.Int64 // scripts that decide on buckets
	Expected        atomic.Int64 // of these, those that found the TAT that was expected
	ExpectedMissed  atomic.Int64 // those that found another
	DenialsAnswered atomic.Int64 // denied without asking
	Ahead           ahead.Counts
	ViewCounts
	failure.Counts
}

// Stats returns the counters, which go on counting.
func (s *Store) Stats() *Stats { return &s.stats }
