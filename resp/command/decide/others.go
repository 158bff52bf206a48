package decide

import (
	"celld/resp/decisions"
	"celld/store"
)

// Verdict is what a caller was told who asked by another protocol than RESP.
type Verdict struct {
	Limited bool
	Shadow  bool // it was told that it may pass, and Limited says what would have been without shadow
}

// Count counts requests that the store has decided for such callers. Those that only look or give back do not count.
func (d *Decider) Count(requests []store.TakeRequest, verdict func(i int) Verdict) {
	for i := range requests {
		r := &requests[i]
		if r.Err != nil || r.Cost <= 0 {
			continue
		}
		c, v := &r.Calls[r.Taken.Binding], verdict(i)
		n := d.Decided.In(d.rowOf(c), d.lane)
		switch {
		case v.Shadow && v.Limited:
			n[decisions.EnvoyAllowed]++
			n[decisions.ShadowLimited]++
		case v.Shadow:
			n[decisions.EnvoyAllowed]++
			n[decisions.ShadowAllowed]++
		case v.Limited:
			n[decisions.EnvoyLimited]++
			countWhy(n, r)
			d.denied = append(d.denied, decisions.Denial{Hash: d.Table.Hash(c.Key), Policy: c.PolicyID(), Key: c.Key})
		default:
			n[decisions.EnvoyAllowed]++
		}
	}
	d.addDenied()
}
