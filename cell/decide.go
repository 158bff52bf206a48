package cell

import (
	"math"
	"math/bits"

	"celld/cell/lease"
)

// Decide decides on a call of a cost from 0 to MaxCost at nowNS, in Unix ns. A Take or Force that is granted changes the state;
// call Fit first. The Decision says what is left after the call. While a key is blocked, Remaining is 0, and a call of cost 0 is denied,
// too.
//
// The state is one that the same Shape and Params have left: see Carry.
func (l *Limit) Decide(st *State, nowNS, cost int64, mode Mode) Decision {
	if cost > l.Count && l.bounds(mode) {
		return l.decideExceeding(st, nowNS, mode)
	}
	blocked := uint64(0)
	if st.BlockedNS > uint64(nowNS) {
		blocked = st.BlockedNS - uint64(nowNS)
		if mode == Take {
			mode = Peek
		}
	}
	var o outcome
	switch by := l.by.(type) { // called by name, these leave limit and state on the caller's stack
	case *gcra:
		o = by.decide(l, st, nowNS, cost, mode)
	case *window:
		o = by.decide(l, st, nowNS, cost, mode)
	case *slide:
		o = by.decide(l, st, nowNS, cost, mode)
	case *buckets:
		o = by.decide(l, st, nowNS, cost, mode)
	case *log:
		o = by.decide(l, st, nowNS, cost, mode)
	case *conc:
		o = by.decide(l, st, nowNS, cost, mode)
	case *warmup:
		o = by.decide(l, st, nowNS, cost, mode)
	default:
		o = l.decideCopied(st, nowNS, cost, mode)
	}
	if l.BlockNS > 0 && blocked == 0 && cost > 0 && mode != Peek {
		blocked = l.block(st, &o, uint64(nowNS))
	}
	if blocked > 0 {
		o = o.behind(blocked, mode != Force)
	}
	limited := o.retryNS > 0
	if !limited {
		o.retryNS = Never
	}
	return Decision{Limited: limited, Blocked: st.BlockedNS > uint64(nowNS), Limit: l.Capacity(), Remaining: o.remaining,
		RetryAfterNS: o.retryNS, ResetAfterNS: o.resetNS}
}

// block begins a block, if the outcome of a call does, and returns how long it lasts for that call, in ns. It lets the call pass that takes
// the last of the limit.
func (l *Limit) block(st *State, o *outcome, now uint64) (blocked uint64) {
	block := uint64(l.BlockNS)
	switch {
	case !l.BlockAtFull && o.retryNS > 0:
		st.BlockedNS, st.AtFull = now+block, false
		return block
	case l.BlockAtFull && o.retryNS == 0 && o.remaining == 0:
		st.BlockedNS, st.AtFull = now+block, true
		o.resetNS = max(o.resetNS, block)
	}
	return 0
}

// bounds reports whether the count bounds the cost of a call.
func (l *Limit) bounds(mode Mode) bool { return mode != Force && !l.can(anyCost) }

// behind is the outcome behind a block, in ns.
func (o outcome) behind(blocked uint64, waits bool) outcome {
	o.remaining, o.resetNS = 0, max(o.resetNS, blocked)
	if waits {
		o.retryNS = max(o.retryNS, blocked)
	}
	return o
}

// decideExceeding denies a call whose cost never passes.
func (l *Limit) decideExceeding(st *State, nowNS int64, mode Mode) Decision {
	if l.BlocksDenied() && mode == Take && st.BlockedNS <= uint64(nowNS) {
		st.BlockedNS, st.AtFull = uint64(nowNS+l.BlockNS), false
	}
	d := l.Decide(st, nowNS, 0, Peek)
	d.Limited, d.RetryAfterNS = true, Never
	return d
}

// decideCopied is for any other algorithm: the compiler does not see what that keeps.
func (l *Limit) decideCopied(st *State, nowNS, cost int64, mode Mode) outcome {
	limit, state := *l, *st
	o := l.by.decide(&limit, &state, nowNS, cost, mode)
	*st = state
	return o
}

// Give gives back up to n of what was taken, the latest first, and returns how much that was. With algo=conc one call ends at most
// lease.MostGiven leases: call it again for the rest.
func (l *Limit) Give(st *State, nowNS, n int64) int64 { return l.kind().give(l, st, nowNS, n) }

// EndNS is when nothing of a state is left to remember, in Unix ns. 0 or an instant that has passed: now.
func (l *Limit) EndNS(st *State) uint64 {
	return max(l.kind().end(st.A, st.B, st.Ring, uint64(l.PeriodNS)), st.BlockedNS)
}

// Fit makes room in a state for one more call of a cost to be taken, and returns by how many words its ring has grown.
func (l *Limit) Fit(st *State, nowNS, cost int64) (words int) {
	return l.kind().fit(l, st, nowNS, cost)
}

// Holds reports whether a state can hold a call that is forced: what is used is MaxCost at most, and is gone after 292 years at most.
// Decide goes no further, and forgets the rest.
func (l *Limit) Holds(st *State, nowNS, cost int64) bool { return l.kind().holds(l, st, nowNS, cost) }

// Fits reports whether one more call can be taken without Fit.
func (l *Limit) Fits(st *State) bool { return l.kind().fits(l, *st) }

// Carry turns a state that old has left into a state of l. What was used stays used, as a number: 80 of 100 are 80 of 1000, and more than
// all of 50. A bucket's debt is as many intervals as before, rounded up to whole ns. A warmup stays as warm as it was. Between limits of
// other shapes, the number is taken anew, now. A ring that changes is a new one.
//
// wasNS is now in old's time, and nowNS is now in l's. They differ when one limit is Aligned. A block stays as long as it was.
//
// Keep the outcome, even when the call is denied. If each call carried the state anew, each would get the same retry after, and none would
// ever pass.
func (l *Limit) Carry(st *State, old *Limit, wasNS, nowNS int64) {
	if l.Shape == old.Shape && l.Params == old.Params {
		return
	}
	if l.Shape == old.Shape || l.Algo == old.Algo && l.can(anyShape) {
		l.kind().carry(l, st, old, nowNS)
		return
	}
	used, blocked := old.Used(st, wasNS), st.BlockedNS
	*st = State{AtFull: st.AtFull}
	if used > 0 {
		l.Fit(st, nowNS, used)
		at := nowNS
		if l.HoldsLeases() {
			at-- // so that what was used expires before a lease that is taken now: leases that expire together become one
		}
		l.Decide(st, at, used, Force)
	}
	st.BlockedNS = ShiftInstant(blocked, nowNS-wasNS)
}

// Used is how much of a state counts, which may be more than all. Nobody knows for how many calls one waits with warmup: it is one.
func (l *Limit) Used(st *State, nowNS int64) int64 {
	switch {
	case l.can(bucketOnly):
		return int64(min(mulDivUp(debtOf(st.A, uint64(nowNS)), 1, uint64(l.bucket.intervalNS)), MaxCost))
	case l.can(ofBursts):
		return l.bucket.capacity - l.kind().decide(l, st, nowNS, 0, Peek).remaining
	}
	wide := l.Counting()
	return MaxCost - wide.kind().decide(&wide, st, nowNS, 0, Peek).remaining
}

// Shift adds ns, negative or not, to every instant in a state. Sub-windows move by whole ones, rounded to the nearest.
func (l *Limit) Shift(st *State, ns int64) {
	st.BlockedNS = ShiftInstant(st.BlockedNS, ns)
	l.kind().shift(l.Shape, st, ns)
}

// ShiftBack undoes a Shift by ns: sub-windows return to where they were.
func (l *Limit) ShiftBack(st *State, ns int64) {
	st.BlockedNS = ShiftInstant(st.BlockedNS, -ns)
	l.kind().shiftBack(l.Shape, st, ns)
}

// Forecast is how long a call of this cost must wait, in ns, if nobody else calls: 0 if it passes now, Never if it never does. For a
// Bookable limit it is what Book would return.
func (l *Limit) Forecast(st *State, nowNS, cost int64) (waitNS uint64) {
	if l.Bookable() {
		after := *st
		return l.Book(&after, nowNS, cost)
	}
	if d := l.Decide(st, nowNS, cost, Peek); d.Limited {
		return d.RetryAfterNS
	}
	return 0
}

// EarnsNS is how long the rate of a limit takes for a cost, in ns; at most math.MaxInt64.
func (l *Limit) EarnsNS(cost int64) uint64 {
	high, low := bits.Mul64(uint64(cost), uint64(l.PeriodNS))
	if high >= uint64(l.Count) {
		return math.MaxInt64
	}
	earns, _ := bits.Div64(high, low, uint64(l.Count))
	return min(earns, math.MaxInt64)
}

// Book takes a call for the first moment at which it passes, and returns how far ahead that is, in ns. Later calls come after it. Book
// returns Never and takes nothing if the call never passes, or only centuries from now. It begins no block. The limit must be Bookable.
func (l *Limit) Book(st *State, nowNS, cost int64) (waitNS uint64) {
	if cost == 0 {
		return 0
	}
	from := max(uint64(nowNS), st.BlockedNS) // nothing passes before the end of a block
	if from > latestBooked || cost > l.Count && l.bounds(Take) {
		return Never
	}
	at := uint64(Never)
	switch by := l.by.(type) { // called by name, as in Decide: else a call that waits behind others took 60 % longer
	case *gcra:
		at = by.book(l, st, from, uint64(cost))
	case *window:
		at = by.book(l, st, from, uint64(cost))
	case *warmup:
		at = by.book(l, st, from, uint64(cost))
	default:
		limit, state := *l, *st
		at = by.book(&limit, &state, from, uint64(cost))
		*st = state
	}
	if at == Never {
		return Never
	}
	return at - uint64(nowNS)
}

// WholeNS is until when a call that is decided at nowNS counts in full, in Unix ns. Who takes for it now, and lets it pass before then,
// lets no more pass than if it were decided as it passes. It is Never for a bucket, and 0 where no call can be decided ahead.
func (l *Limit) WholeNS(st *State, nowNS int64) uint64 {
	if l.BlockNS > 0 || l.Shadow {
		return 0
	}
	return l.kind().whole(l, st, uint64(nowNS))
}

// TakenNS is what a lease remembers of the call that was just granted: when it passed, not before the window that it counts in begins, or,
// with gcra, when it will have flowed back.
func (l *Limit) TakenNS(st *State, nowNS int64) uint64 { return l.kind().takenNS(l, st, nowNS) }

// TakenAt is TakenNS of a call of which only the decision is known, and when it passed; 0: that is not known.
func (l *Limit) TakenAt(d *Decision, passedNS int64) uint64 {
	if passedNS == 0 || !l.can(bucketOnly) {
		return uint64(passedNS)
	}
	return uint64(passedNS) + min(d.ResetAfterNS, math.MaxInt64)
}

// PassedNS is when the call of a lease with this TakenNS passed, or will pass; 0: not known.
func (l *Limit) PassedNS(takenNS uint64) uint64 { return l.kind().passedNS(l, takenNS) }

// GiveBack gives back the costs of leases that were taken from a limit, except what had come back by itself at the end of the lease: its
// expiry, or nowNS if that is sooner. So it does not matter how late GiveBack is called, as long as nobody else takes before. To a bucket
// it gives what had not flowed back yet. To a window, a slide or a log it gives only what still counted: the window, the sub-window or the
// call of the lease. To leases it gives nothing. It may change from, which is in any order. Instants are in the time that the limit decides
// in.
//
// companion is the shape of the leases' state. GiveBack gives nothing where the policy was a gcra when the leases were taken, and has
// another algorithm now: it is not known when they were taken.
func (l *Limit) GiveBack(st *State, nowNS int64, companion *Shape, from []lease.Lease) {
	if algorithms[companion.Algo].can&bucketOnly == 0 || l.can(bucketOnly) {
		for i := range from {
			from[i].ExpiryNS = min(from[i].ExpiryNS, uint64(nowNS))
		}
		l.kind().giveBack(l, st, nowNS, from)
	}
}

// counts reports whether a call is taken, and whether it must wait, where used counts against the count.
func (l *Limit) counts(used uint64, cost int64, mode Mode) (taken, waits bool) {
	passes := cost == 0 || mode == Force || used+uint64(cost) <= uint64(l.Count)
	return passes && cost > 0 && mode != Peek, !passes
}

// used is the outcome where n counts against the capacity until endNS. It does not say when a denied call will pass.
func (l *Limit) used(n, endNS, now uint64) outcome {
	return outcome{remaining: max(0, l.capacity-int64(n)), resetNS: debtOf(endNS, now)}
}
