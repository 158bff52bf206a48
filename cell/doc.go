// Package cell is the arithmetic of rate limits: pure functions from a state, a limit, a cost and an instant to the
// next state and a decision. It reads no clock, takes no lock, does no I/O and allocates nothing on the deciding path.
//
//	bucket, err := cell.NewBucket(15, 30, 60)        // 30 a minute, 16 at once
//	tat, d, err := bucket.Throttle(tat, now, 1)      // tat is all there is to remember, 0 for a new key
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
// # Limit literals
//
// A Limit is what callers write, with the algorithm that it counts by. What is remembered of it under a key is a
// State: two words, a block, and for some a ring of words, which Fit makes and nothing else allocates.
//
//	limit, err := cell.ParseLimit("100/1m,algo=slide,buckets=6")
//	limit.Fit(&state, now)
//	d := limit.Decide(&state, now, 1, cell.Take)
//	if d.Limited { wait(d.RetryAfterNS) }
//	drop(state, limit.EndNS(&state))                 // from then on it is that of a key never seen
//
// RetryAfterNS is exact: unless others call, the same call passes then and not a nanosecond sooner. The algorithms differ in
// what they remember, and in how much passes when callers choose the worst times:
//
//	algo              State.A           State.B             Ring           most in any span of a period
//	────────────────  ────────────────  ──────────────────  ─────────────  ─────────────────────────────────
//	gcra              TAT               -                   -              burst + count
//	warmup            when the next     ns until it is      -              1 + count, for calls of cost 1
//	                  call passes       cold, from then on
//	window            its end           before<<32 | used   -              2 × count, around an edge
//	slide             the window's      used<<32 |          -              2 × count; its weighted sum is
//	                  start             used in the last                   never more than count
//	slide,buckets=n   number of the     sum                 n counters     count in n aligned sub-windows, so
//	                  newest counter                                       2 × count in a span that cuts one
//	log               first<<32 |       sum before the      time and sum   count
//	                  entries           first               of each call
//	conc              -                 before which ends   leases         count at any instant
//	                                    are over, or 0
//
// Leases are the ring of a conc, or of a companion: the state beside that of any other limit, of the same Shape with Leases set, that
// holds what was taken on a lease. AddLease, FindLease and their like change both alike. What a lease of a companion held is the
// caller's to give back, by Give.
//
// Of gcra, warmup and window a call can be booked ahead of its moment: Book takes it then, and tells how long that is. Forecast
// only tells. What is decided or booked later comes after it.
//
// A state is that of one Shape (algorithm and period) and the Params (count and burst) that it was last decided by. Carry
// turns it into one for others: what was used stays used, as a share, rounded up. Shift moves a state in time. Realign adapts
// one that goes by the clock or the calendar when the wall clock is set.
// AppendState and ParseState are a state as text; Parts, AppendPart and ParsePart what is new of a long log.
//
// # Units
//
// A TAT is Unix time in nanoseconds as uint64, which reaches the year 2554: with redis-cell a TAT may lie 292 years
// ahead of now, past what int64 holds. Durations are whole nanoseconds.
package cell
