// Package cell is the arithmetic of rate limits: pure functions from a state, a limit, a cost and an instant to the
// next state and a decision. It reads no clock, takes no lock, does no I/O and allocates nothing on the deciding path.
// Only ParseLimit reads the time zone database, once for each zone that limits name. The package knows neither keys, wire nor storage.
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
// A Limit is what callers write. It counts by one algorithm. A State is what is remembered of it under a key: two words, a block, and for
// some algorithms a ring of words. Only Fit allocates: it makes room in the ring.
//
//	limit, err := cell.ParseLimit("100/1m,algo=slide,buckets=6")
//	limit.Fit(&state, now, 1)
//	d := limit.Decide(&state, now, 1, cell.Take)
//	if d.Limited { wait(d.RetryAfterNS) }
//	drop(state, limit.EndNS(&state))                 // from then on the state is that of a key never seen
//
// RetryAfterNS is exact: unless others call, the same call passes then and not a nanosecond sooner. The algorithms differ in what they
// remember, and in how much passes when callers choose the worst times:
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
//	conc              -                 leases that expire  leases         count at any instant
//	                                    before it are gone
//
// Two kinds of states hold leases, and State.Leases gives access to them (package cell/lease): that of a conc, and a companion. A companion
// stands beside the state of any other limit, has the same Shape with Leases set, and holds the leases of what was taken from that limit.
// When such a lease expires, the caller gives its cost back to the limit by GiveBack.
//
// With gcra, warmup and window, a call can be booked ahead of its moment. Book takes it for the first moment at which it passes, and
// returns how far ahead that is. Forecast returns the same and takes nothing. Later calls come after a booked one.
//
// A state belongs to one Shape (algorithm and period) and to the Params (count and burst) that it was last decided by. Carry turns it into
// a state for others: what was used stays used, as a number. Shift moves a state in time. Realign adapts a state that follows
// the clock or the calendar when the wall clock is set. AppendState writes a state as text, and ParseState reads it. Parts, AppendPart and
// ParsePart do so for what is new in a long log.
//
// # Units
//
// A TAT is Unix time in nanoseconds as uint64, which reaches the year 2554: with redis-cell a TAT may lie 292 years
// ahead of now, past what int64 holds. Durations are whole nanoseconds.
package cell
