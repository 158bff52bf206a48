package memory

import "celld/store/memory/table"

// gone reports whether a key holds limits of a policy that is gone. While none ever went, it costs one comparison.
func (sh *shard) gone(e *table.Slot) bool {
	if e.Settle(); !e.HoldsLimits() || sh.policies.PoliciesLost() == 0 {
		return false
	}
	for p := range sh.TalliesOf(e) {
		if sh.lost(p) {
			return true
		}
	}
	return false
}

// lost reports whether a tally is of a policy that is gone.
func (sh *shard) lost(p *table.Tally) bool {
	id := p.Policy.Load()
	return id != 0 && sh.policies.PolicyOf(id) == nil
}

// prune removes what a key holds of policies that are gone, and reports whether the key is still there.
func (sh *shard) prune(n uint32, e *table.Slot, nowNS int64) bool {
	if !sh.gone(e) {
		return true
	}
	limits := sh.limits(e)
	end := sh.EndOf(limits)
	if end <= uint64(nowNS) {
		sh.remove(n, e)
		return false
	}
	var scratch [table.HugeKey]byte
	key := sh.Keys.View(n, e, &scratch)
	before := sh.LimitBytes(e)
	sh.setLimits(e, limits)
	sh.releaseBytes(before - sh.LimitBytes(e))
	sh.moveEnd(n, e, end, key)
	return true
}
