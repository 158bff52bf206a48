package ahead

import (
	"math"
	"slices"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/remote/view"
)

// Grant is a request for units, which goes with a call that the engine decides, or alone. One that goes alone may give units back.
type Grant struct {
	of    *holding
	want  int64
	asked int64 // calls that have come lately in the time for which units last
	cost  int64 // of the call that asks. Calls like it cannot use fewer units, and lost what remained while they were denied
	lasts time.Duration

	nearNS int64 // so much later than at once a unit may become good
	alone  bool  // nobody else has taken from the bucket since this process did

	returns *portion // its unused units go back first; nil: none do
	given   bool     // they have gone back

	n     int64     // units that were granted
	mark  uint64    // the TAT after them of the one bucket, or the end of the one window; else 0
	nowNS int64     // the engine's time at which they were taken
	endNS int64     // and at which they end
	end   time.Time // the same by the clock of this process, which nobody sets

	buckets []bucket           // what they have left of each bucket
	tatNS   uint64             // of CL.THROTTLE, before
	before  []store.LimitState // of CL.TAKE, before
}

// bucket is what units have left of one.
type bucket struct {
	call                    int    // of the ask
	tatNS                   uint64 // of the last unit
	intervalNS, toleranceNS int64
}

// FairShare is which part of what remains is taken at most. So portions become small where little is left, and instances share that.
const FairShare = 8

// most is how many units of a bucket with this TAT are taken at most.
func (g *Grant) most(b cell.Bucket, tatNS uint64) int64 {
	debt := int64(max(tatNS, uint64(g.nowNS))) - g.nowNS
	return max(0, (b.ToleranceNS()+g.nearNS-debt)/b.IntervalNS()/FairShare)
}

// bucket is the one of an ask on which a script decides. Other calls of the key may have other buckets.
func (g *Grant) bucket() cell.Bucket {
	if calls := g.of.ask.calls; calls != nil {
		return calls[0].Limit.Bucket()
	}
	return g.of.ask.bucket
}

// Numbers are what a script is asked for that decides on one bucket: how many units of it, how long they last, and how much debt leaves
// room for more of which interval, all times in ns. Of a window they are how many, 0, its count, and 1. The last three are how many units
// go back first, their mark, and when they end.
func (g *Grant) Numbers() [7]int64 {
	n := [7]int64{g.want, 0, 0, 1}
	if l := g.window(); l != nil {
		n[2] = l.Count
	} else {
		b := g.bucket()
		n[1], n[2], n[3] = int64(g.lasts), b.ToleranceNS()+g.nearNS, b.IntervalNS()
	}
	if p := g.returns; p != nil {
		n[4], n[5], n[6] = p.left, int64(p.mark), p.latestNS()
	}
	return n
}

// window is the one of an ask on which a script decides; nil: that is a bucket.
func (g *Grant) window() *cell.Limit {
	if calls := g.of.ask.calls; calls != nil && !calls[0].Limit.IsBucket() {
		return calls[0].Limit
	}
	return nil
}

// Returned is a state of the limit at a time, less the units that go back first. It notes whether they do.
func (g *Grant) Returned(st cell.State, nowNS int64) cell.State {
	p := g.returns
	g.given = p != nil && st.A == p.mark && nowNS < p.latestNS() && (g.want == 0 || g.window() == nil || st.B > uint64(p.left))
	if !g.given {
		return st
	}
	if g.window() == nil {
		st.A -= uint64(p.left * g.bucket().IntervalNS())
	} else if st.B -= min(st.B, uint64(p.left)); st.B == 0 {
		return cell.State{}
	}
	return st
}

// Granted is the answer of such a script, which was sent at an instant: n units, at a time, of a limit that then had this state. alone:
// nobody else has taken from the bucket since this process did. It returns the state after the units.
func (g *Grant) Granted(n, nowNS int64, st cell.State, sent time.Time, alone bool) (next cell.State) {
	g.n, g.nowNS, g.alone, g.tatNS = n, nowNS, alone, st.A
	calls, lasts := g.of.ask.calls, int64(g.lasts)
	if calls != nil {
		g.before = []store.LimitState{{Policy: calls[0].Policy, Limit: *calls[0].Limit, State: st}}
	}
	switch {
	case n == 0:
	case g.window() != nil:
		calls[0].Limit.Decide(&st, nowNS, n, cell.Take)
		lasts = min(lasts, int64(st.A)-nowNS)
	default:
		b := g.bucket()
		st.A = max(st.A, uint64(nowNS+lasts)) + uint64(n*b.IntervalNS())
		g.buckets = []bucket{{0, st.A, b.IntervalNS(), b.ToleranceNS()}}
	}
	g.mark, g.endNS, g.end = st.A, nowNS+lasts, sent.Add(time.Duration(lasts-lasts/1000))
	return st
}

// Decide takes the units from what the engine holds.
func (g *Grant) Decide(v *view.View) {
	held := g.of
	h, asked := held.ahead, time.Now()
	upper, known := h.Clock(held.name).Upper()
	g.n, g.nowNS, g.buckets, g.before, g.tatNS, g.mark = 0, v.NowNS, nil, nil, 0, 0
	g.given = g.returns != nil && g.returns.back(v)
	if !known || held.ask.calls == nil || h.Waits(string(held.key)) || h.void(held, g.nowNS) {
		return
	}
	lasts := min(int64(g.lasts-g.lasts/1000), g.takeLimits(v)) // clocks drift apart by less
	g.endNS = g.nowNS + lasts
	g.end = asked.Add(time.Duration(g.endNS - upper))
}

// void reports whether a rule applies to the key now, or a policy that it asks for has gone.
func (h *Ahead) void(held *holding, nowNS int64) bool {
	return h.Policies.HasRules() && h.Policies.Rule(held.key, nil, nowNS) != nil ||
		slices.ContainsFunc(held.ask.calls, func(c store.Call) bool { return c.Policy != nil && h.Policies.LimitOf(c.Policy.ID) == nil })
}

// at is an access at a time.
func at(nowNS int64) store.Access { return store.Access{NowNS: nowNS} }

// latestNS is the latest moment at which the units may be used.
func (g *Grant) latestNS() int64 { return g.nowNS + int64(g.lasts) }

// Units are taken by the arithmetic of package cell, and not by the table of the view. At the moment at which a bucket counts them, the
// table would find that what the key holds is over, and remove it.

// takeLimits takes units of CL.TAKE from all limits, or none. It returns how long they last at most, in ns.
func (g *Grant) takeLimits(v *view.View) (lasts int64) {
	all, ours, ok := statesOf(v.Store, &g.of.ask, g.of.key, g.nowNS)
	if !ok {
		return 0
	}
	n, lasts := g.want, int64(g.lasts)
	for _, i := range ours {
		l := &all[i]
		if whole := l.Limit.WholeNS(&l.State, g.nowNS); whole != cell.Never {
			lasts = min(lasts, int64(whole)-g.nowNS)
			n = min(n, l.Limit.Decide(&l.State, g.nowNS, 0, cell.Peek).Remaining/FairShare)
		} else {
			n = min(n, g.most(l.Limit.Bucket(), l.State.A))
		}
	}
	if n < max(1, g.cost) {
		return 0
	}
	before := make([]store.LimitState, len(ours))
	for at, i := range ours {
		l := &all[i]
		before[at] = *l
		before[at].State.Ring = slices.Clone(l.State.Ring)
		l.Limit.Fit(&l.State, g.nowNS, n)
		l.Limit.Decide(&l.State, g.momentOf(l), n, cell.Take)
		if b := l.Limit.Bucket(); l.Limit.WholeNS(&l.State, g.nowNS) == cell.Never {
			g.buckets = append(g.buckets, bucket{at, l.State.A, b.IntervalNS(), b.ToleranceNS()})
		}
	}
	value := store.Value{HoldsLimits: true, Limits: &all, TAT: all.EndNS(), ExpiryNS: store.AtTAT}
	if v.Update(g.of.key, at(g.nowNS), func(store.Value, bool) (store.Value, bool) { return value, true }) != nil {
		return 0
	}
	if g.n, g.before = n, before; len(ours) == 1 {
		g.mark = all[ours[0]].State.A
	}
	return lasts
}

// momentOf is when a limit counts the units: a bucket as late as they may be used.
func (g *Grant) momentOf(l *store.LimitState) int64 {
	if l.Limit.WholeNS(&l.State, g.nowNS) == cell.Never {
		return g.latestNS()
	}
	return g.nowNS
}

// statesOf are copies of all limits of a key, and where those of an ask are among them. It returns false if one has other parameters, or
// the key holds something else.
func statesOf(t *memory.Store, k *ask, key []byte, nowNS int64) (all store.Limits, ours []int, ok bool) {
	_, err := t.Limits(key, at(nowNS), func(l *store.LimitState) {
		one := *l
		one.State.Ring = slices.Clone(l.State.Ring)
		all = append(all, one)
	})
	for _, c := range k.calls {
		i := slices.IndexFunc(all, func(l store.LimitState) bool { return l.Policy == c.Policy && l.Limit.Shape == c.Limit.Shape })
		if i < 0 {
			all, i = append(all, store.LimitState{Policy: c.Policy, Limit: *c.Limit}), len(all)
		}
		if all[i].Limit.Params != c.Limit.Params {
			return nil, nil, false
		}
		ours = append(ours, i)
	}
	return all, ours, err == nil
}

// Ask is what the units are for: CL.THROTTLE of a bucket or, with limits, CL.TAKE.
func (g *Grant) Ask() (key []byte, name string, b cell.Bucket, limits []store.Call) {
	return g.of.key, g.of.name, g.of.ask.bucket, g.of.ask.calls
}

// Has reports whether units were granted.
func (g *Grant) Has() bool { return g.n > 0 }

// Done adds the units to those that are held; err: the engine has not granted them.
func (g *Grant) Done(err error) {
	held := g.of
	if p := g.returns; p != nil && err == nil && g.given {
		held.ahead.Counts.GivenBack.Add(p.left)
	} else if p != nil {
		held.ahead.Counts.Ended.Add(p.left)
	}
	if g.want == 0 {
		return
	}
	held.shard.mu.Lock()
	held.asking = false
	granted := err == nil && g.n > 0
	if t := held.shard.heatOf(held.hash); t.hash == held.hash && g.nowNS != 0 { // the engine was asked
		t.alone, t.short, t.flows = err == nil && g.alone, err == nil && g.n < g.want, 0
		if granted {
			t.flows = g.flows()
		}
	}
	if !granted {
		held.again = time.Now().Add(g.lasts)
	}
	late := granted && held.gone
	switch {
	case held.gone:
	case granted:
		held.add(g)
	case len(held.portions) == 0:
		held.remove()
	}
	held.shard.mu.Unlock()
	if granted {
		held.ahead.Counts.Taken.Add(g.n)
	}
	if late {
		(&portion{*g, g.n}).giveBack()
	}
}

// show puts what the key held before into the table from which replies come.
func (g *Grant) show(t *memory.Store) {
	held := g.of
	t.Delete(held.key, g.nowNS)
	value := store.Value{TAT: g.tatNS, ExpiryNS: store.AtTAT}
	if held.ask.calls != nil {
		limits := store.Limits{}
		for _, l := range g.before {
			if l.Limit.EndNS(&l.State) > uint64(g.nowNS) {
				limits = append(limits, l)
			}
		}
		value = store.Value{HoldsLimits: true, Limits: &limits, TAT: limits.EndNS(), ExpiryNS: store.AtTAT}
	}
	if value.TAT > uint64(g.nowNS) {
		_ = t.Update(held.key, at(g.nowNS), func(store.Value, bool) (store.Value, bool) { return value, true }) // it has room
	}
}

// giveAll gives n units back to all limits in a table.
func (g *Grant) giveAll(t *memory.Store, n int64) {
	held := g.of
	if held.ask.calls == nil {
		_, _ = t.Throttle(held.key, held.ask.bucket, -n, at(g.nowNS))
	}
	for _, c := range held.ask.calls {
		_, _ = t.Give(held.key, c.Limit, c.Policy, n, at(g.nowNS))
	}
}

// giveBackAll gives back what is left of portions. A bucket takes the newest only, and then the one before it.
func giveBackAll(portions []portion) {
	for i := range slices.Backward(portions) {
		portions[i].giveBack()
	}
}

// giveBack gives back what is left of a portion.
func (p *portion) giveBack() {
	if p.left > 0 {
		p.of.ahead.Renew(&Grant{of: p.of, returns: p})
	}
}

// flowsIn is in which part of the time for which units last those flow back that are not given back, an eighth. So nobody is denied for
// longer than the setting says.
const flowsIn = 8

// flows is how many units of the buckets flow back so soon, if all that was taken by now has flowed back so soon after their end; else 0,
// and where units are of other limits, too.
func (g *Grant) flows() (n int64) {
	if len(g.buckets) < max(1, len(g.of.ask.calls)) {
		return 0
	}
	n = math.MaxInt64
	for _, b := range g.buckets {
		if n = min(n, int64(g.lasts)/flowsIn/b.intervalNS); b.tatNS > uint64(g.nowNS+int64(g.lasts+g.lasts/flowsIn)) {
			return 0
		}
	}
	return n
}

// back gives back to what the engine holds, and reports whether all limits have it: a bucket only if nobody has taken from it since.
func (p *portion) back(v *view.View) (all bool) {
	held := p.of
	if v.NowNS >= p.latestNS() || held.ask.calls == nil {
		return false
	}
	states, ours, all := statesOf(v.Store, &held.ask, held.key, v.NowNS)
	if !all {
		return false
	}
	buckets := p.buckets
	for i, c := range held.ask.calls {
		takenNS := uint64(p.nowNS)
		if len(buckets) > 0 && buckets[0].call == i {
			tat := buckets[0].tatNS
			takenNS, buckets = 0, buckets[1:]
			if states[ours[i]].State.A != tat {
				all = false
				continue
			}
		}
		given, err := v.GiveBack(held.key, c.Limit, c.Policy, p.left, takenNS, at(v.NowNS))
		all = all && err == nil && given == p.left
	}
	return all
}
