package cell

// Conc counts what is in flight: leases, each of which ends by itself after a period unless it is dropped or renewed. State.Ring has
// them: see leases. A Take adds one without an ID, for which IdentifyLease must give one before the next call. There are never more than
// count in flight at an instant, but for Force.
func (l *Limit) conc(st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	r := leases{st}
	live := r.firstAfter(now)
	used := r.sumBefore(r.n()) - r.sumBefore(live)
	passes := used+uint64(cost) <= uint64(l.Count)
	if cost > 0 && (mode == Force || mode == Take && passes) {
		r.dropFirst(live)
		r.add(Lease{EndNS: now + uint64(l.PeriodNS), Cost: cost})
		live, used = 0, r.sumBefore(r.n())-st.B
	}
	o := l.used(used, r.lastEnd(), now)
	if mode != Force && cost > 0 && !passes {
		o.retryNS = Never
		if cost <= l.Count {
			o.retryNS = r.end(r.firstWithSum(live, used+uint64(cost)-uint64(l.Count))) - now
		}
	}
	return o
}

// giveConc takes from the leases that end last. One of which nothing is left is gone.
func (l *Limit) giveConc(st *State, nowNS, n int64) int64 {
	r := leases{st}
	r.dropFirst(r.firstAfter(uint64(nowNS)))
	left := uint64(n)
	for i := r.n() - 1; i >= 0 && left > 0; i-- {
		if r.isLink(i) {
			continue
		}
		cost := r.cost(i)
		if cost <= left {
			left -= cost
			r.drop(i, r.after(i))
			continue
		}
		for j := i; j < r.n(); j++ {
			*r.word(j, sumWord) -= left
		}
		left = 0
	}
	return n - int64(left)
}

// fitConc makes room for one more lease.
func (l *Limit) fitConc(st *State, nowNS int64) (words int) {
	r := leases{st}
	r.dropFirst(r.firstAfter(uint64(nowNS)))
	return r.fit(1)
}
