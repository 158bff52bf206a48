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

// Count counts requests that the store has decided for such callers. Those that give back, or take nothing, do not count.
func (d *Decider) Count(requests []store.TakeRequest, verdict func(i int) Verdict) {
	f := &d.single
	for i := range requests {
		r := requests[i] // a copy, for what its caller was told
		if r.Err != nil || r.Cost <= 0 {
			continue
		}
		v := verdict(i)
		r.Taken.Limited = v.Limited && !v.Shadow
		f.limits, f.counted = d.appendLimits(f.limits[:0], r.Calls), decisions.EnvoyAllowed
		d.countTaken(false, f, &r)
		d.noteTake(decisions.ByCalls, 1, false, &r)
		n := d.Decided.In(f.limits[r.Taken.Binding].row, d.lane)
		switch {
		case v.Shadow && v.Limited:
			n[decisions.ShadowLimited]++
		case v.Shadow:
			n[decisions.ShadowAllowed]++
		}
	}
	d.addCame()
}
