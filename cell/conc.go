package cell

// conc counts what is in flight: leases, each of which ends by itself after a period unless it is dropped or renewed. State.Ring has
// them: see leases. A Take adds one without an ID, for which IdentifyLease must give one before the next call. There are never more than
// count in flight at an instant, except by Force.
type conc struct{ held }

func (*conc) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	r := leases{st}
	live := r.firstAfter(nowNS)
	used := r.sumFrom(live)
	taken, waits := l.counts(used, cost, mode)
	if taken {
		r.dropEnded(nowNS)
		r.add(Lease{EndNS: now + uint64(l.PeriodNS), Cost: cost})
		used = min(used+uint64(cost), mostUsed)
	}
	o := l.used(used, r.lastEnd(), now)
	if waits {
		o.retryNS = r.end(r.withSum(r.sumBefore(live)+used+uint64(cost)-uint64(l.Count))) - now
	}
	return o
}

// MostGiven is how many leases of algo=conc a Give ends at most: 1,024 take 0.2 ms.
const MostGiven = 1 << 10

// give takes from the leases that end last. One of which nothing is left is gone.
func (*conc) give(_ *Limit, st *State, nowNS, n int64) int64 {
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

// fit makes room for one more lease.
func (*conc) fit(_ *Limit, st *State, nowNS int64) (words int) {
	r := leases{st}
	r.dropEnded(nowNS)
	return r.fit(1)
}

func (*conc) fits(_ *Limit, st State) bool { return leases{&st}.fits(1) }

// IdentifyLease says whose lease it is that Decide has just added to a limit of algo=conc. Only what is neither time nor cost is
// taken from l. It does nothing where there is none.
func (l *Limit) IdentifyLease(st *State, nowNS int64, lease Lease) {
	r := leases{st}
	end := max(uint64(nowNS+l.PeriodNS), st.B)
	if n := r.lastUntil(end); n != 0 && r.end(n) == end && r.id(n) == 0 {
		r.unindex(n, byID)
		r.identify(n, lease)
		r.index(n, byID)
	}
}

// held is a state of leases that nothing is decided by: the companion of another.
type held struct{ plain }

func (*held) decide(*Limit, *State, int64, int64, Mode) outcome { return outcome{} }

func (*held) end(_, b uint64, ring []uint64, _ uint64) uint64 {
	return leases{&State{B: b, Ring: ring}}.lastEnd()
}

func (*held) give(*Limit, *State, int64, int64) int64 { return 0 }

func (*held) giveBack(*Limit, *State, int64, []Lease) {}

func (*held) shift(_ Shape, st *State, ns int64) { leases{st}.shift(ns) }

func (*held) appendText(b []byte, _ Shape, st State) []byte { return leases{&st}.appendText(b) }
