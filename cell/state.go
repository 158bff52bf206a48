package cell

import (
	"math"
	"math/bits"

	"celld/cell/lease"
)

// State is what is remembered of a limit under a key: two words, whose meaning stands in the file of the algorithm, and for some algorithms
// a ring of words. The zero value is the state of a key never seen.
type State struct {
	A, B      uint64
	BlockedNS uint64   // Unix ns until which every call is denied (block=); 0 or past: none is
	AtFull    bool     // that block is one of block-at=full
	Ring      []uint64 // log, slide with buckets, and leases; Fit makes it
}

// Leases are the leases of a state whose shape HoldsLeases.
func (st *State) Leases() lease.Set { return lease.SetIn(&st.B, &st.Ring) }

// Mode is what a call does.
type Mode uint8

const (
	Take  Mode = iota // a call that passes is taken; one that does not changes only the block
	Peek              // nothing is changed
	Force             // the call is taken whether it passes or not
)

// Never is the RetryAfterNS of a call that passed, and of one that will never pass.
const Never = math.MaxUint64

// Decision is the answer to one call.
type Decision struct {
	Limited      bool
	Blocked      bool   // the key is blocked, by this call or an earlier one
	Limit        int64  // the most that passes at one instant, max burst + 1
	Remaining    int64  // what would pass now, 0..Limit
	RetryAfterNS uint64 // until the same call passes, >= 1, or Never
	ResetAfterNS uint64 // until the key is full again and not blocked: EndNS - now, 0 when it is full
}

// outcome is what an algorithm makes of a call. It is small enough to stay in registers, as a Decision is not.
type outcome struct {
	remaining int64
	retryNS   uint64 // 0: not limited
	resetNS   uint64 // from now to the end of the state; an end that never comes is latestEnd, so that their sum does not wrap
}

// ShiftInstant adds ns to an instant. The result is never negative, and no later than MaxInt64 unless the instant was. 0 is no instant and
// stays 0.
func ShiftInstant(instant uint64, ns int64) uint64 {
	switch {
	case instant == 0:
		return 0
	case ns < 0:
		return instant - min(instant, uint64(-ns))
	}
	return instant + min(uint64(ns), max(instant, math.MaxInt64)-instant)
}

// scale is n×to/from rounded up, at most MaxInt64. from is more than 0.
func scale(n, to, from uint64) uint64 {
	if high, _ := bits.Mul64(n, to); high >= from {
		return math.MaxInt64
	}
	return min(mulDivUp(n, to, from), math.MaxInt64)
}

// mulDiv is a×b/by rounded down. The result must fit 64 bits; the product need not.
func mulDiv(a, b, by uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, _ := bits.Div64(high, low, by)
	return quotient
}

// mulDivUp is mulDiv rounded up.
func mulDivUp(a, b, by uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, rest := bits.Div64(high, low, by)
	if rest > 0 {
		quotient++
	}
	return quotient
}
