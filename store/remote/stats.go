package remote

import "sync/atomic"

// Stats count what a Store does.
type Stats struct {
	SetNew          atomic.Int64 // keys taken by SET NX GET
	SetNewRefused   atomic.Int64 // of these, those in use
	Scripts         atomic.Int64 // scripts that decide on buckets
	Changes         atomic.Int64 // decisions by package store
	Conflicts       atomic.Int64 // of these, those decided again
	DenialsAnswered atomic.Int64 // denied without asking
}
