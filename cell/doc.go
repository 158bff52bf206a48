// Package cell is the arithmetic of rate limits: pure functions from a state, a limit, a cost and an instant to the
// next state and a decision. It reads no clock, takes no lock, does no I/O and allocates nothing on the deciding path.
//
//	limit, err := cell.NewLimit(15, 30, 60)          // 30 a minute, 16 at once
//	tat, d, err := limit.Throttle(tat, now, 1)       // tat is all there is to remember, 0 for a new key
//	if d.Limited { wait(d.RetryAfterNS) }
//
// # GCRA
//
// The Generic Cell Rate Algorithm (ITU-T I.371, annex A; in the form Brandur Leach's redis-cell and throttled use it)
// keeps one number a key, the theoretical arrival time (TAT): the instant at which the bucket is full again.
//
//	          allow at          now                   TAT                     new TAT
//	─────────────┼───────────────┼─────────────────────┼─────────────────────────┼────────▶ time
//	             │               │◀──── reset after ──▶│◀────── increment ──────▶│
//	             │◀──────────────────────── tolerance ──────────────────────────▶│
//
// A call costs increment = emission interval × quantity. It moves the TAT that far, and is allowed when the new TAT is
// no further from now than the tolerance = emission interval × (max burst + 1). A TAT that has passed carries nothing:
// the key is full, and is the same as one never seen.
//
// # Units
//
// A TAT is Unix time in nanoseconds as uint64, which reaches the year 2554: with redis-cell a TAT may lie 292 years
// ahead of now, past what int64 holds. Durations are whole nanoseconds.
package cell
