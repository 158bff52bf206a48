package cell

// Conc counts what is in flight: leases, each of which ends by itself after a period unless it is dropped or renewed. State.Ring has
// them: see leases. A Take adds one without an ID, for which IdentifyLease must give one before the next call. There are never more than
// count in flight at an instant, but for Force.
func (l *Limit) conc(st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	r := leases{st}
	live := r.firstAfter(nowNS)
	used := r.sumFrom(live)
	passes := used+uint64(cost) <= uint64(l.Count)
	if cost > 0 && (mode == Force || mode == Take && passes) {
		r.dropEnded(nowNS)
		r.add(Lease{EndNS: now + uint64(l.PeriodNS), Cost: cost})
		used = min(used+uint64(cost), mostUsed)
	}
	o := l.used(used, r.lastEnd(), now)
	if mode != Force && cost > 0 && !passes {
		o.retryNS = Never
		if cost <= l.Count {
			o.retryNS = r.end(r.withSum(r.sumBefore(live)+used+uint64(cost)-uint64(l.Count))) - now
		}
	}
	return o
}

// MostGiven is how many leases of algo=conc a Give ends at most: 1,024 take 0.2 ms.
const MostGiven = 1 << 10

// giveConc takes from the leases that end last. One of which nothing is left is gone.
func (l *Limit) giveConc(st *State, nowNS, n int64) int64 {
	r := leases{st}
	r.dropEnded(nowNS)
	owed := uint64(n)
	for at, ended := r.previous(0), 0; at != 0 && r.end(at) >= st.B && owed > 0 && ended < MostGiven; ended++ {
		cost, before := r.cost(at), r.previous(at)
		switch {
		case r.isLink(at):
		case cost <= owed:
			owed -= cost
			r.drop(at)
		default:
			r.addCost(at, -owed)
			owed = 0
		}
		at = before
	}
	return n - int64(owed)
}

// fitConc makes room for one more lease.
func (l *Limit) fitConc(st *State, nowNS int64) (words int) {
	r := leases{st}
	r.dropEnded(nowNS)
	return r.fit(1)
}
