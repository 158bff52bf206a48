package shard

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// TakePlain answers a plain request on a key that is there and holds nothing but its limit, as nearly all do. The shard is locked. For any
// other request it decides nothing and returns false.
func (sh *Shard) TakePlain(r *store.TakeRequest, a store.Access) (done bool) {
	c := &r.Calls[0]
	if !isPlain(r) || sh.policies.HasRules() || c.Limit.HoldsLeases() {
		return false
	}
	n, e := sh.Meet(r.Hash, c.Key, a)
	if e == nil || !e.HoldsLimits() || e.Has(table.FlagsOfState|table.FlagWaited) {
		return false
	}
	p := sh.Limits.At(e.FirstLimit())
	if !p.Alone(c.Limit, c.PolicyID()) {
		return false
	}
	st := sh.Limits.State(p)
	at := sh.TimeOf(c.Limit, a.NowNS)
	if BlockedTooLong(c, &st, at) || c.Limit.HasRing() && !c.Limit.Fits(&st) { // more room must be claimed first
		return false
	}
	ring, blocked := st.Ring, st.BlockedNS
	c.Decision = c.Limit.Decide(&st, at, r.Cost, cell.Take)
	if table.OtherRing(st.Ring, ring) { // a new one: room must be claimed first
		return false
	}
	sh.Counters.hits++
	if !c.Decision.Limited || st.BlockedNS != blocked {
		p.SetState(&st)
		sh.PutEnd(n, e, uint64(a.NowNS)+c.Decision.ResetAfterNS, c.Key)
	}
	answerOne(r)
	return true
}

// isPlain reports a request of one limit that just takes.
func isPlain(r *store.TakeRequest) bool {
	return len(r.Calls) == 1 && !r.Calls[0].Own && r.Mode == cell.Take && !r.UpTo && r.Terms == nil
}

// answerOne answers a plain request by the decision on its only call.
func answerOne(r *store.TakeRequest) {
	r.Err = nil
	if c := &r.Calls[0]; c.Decision.Limited && !c.Limit.Shadow {
		r.Taken = store.Taken{Limited: true, RetryAfterNS: c.Decision.RetryAfterNS, ResetAfterNS: c.Decision.ResetAfterNS}
	} else {
		r.Taken = store.Taken{Granted: r.Cost, RetryAfterNS: cell.Never, ResetAfterNS: c.Decision.ResetAfterNS}
	}
}
