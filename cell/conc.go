package cell

import "celld/cell/lease"

// conc counts what is in flight: leases, each of which expires after a period unless it is dropped or renewed. State.B and State.Ring hold
// them: see State.Leases. A Take adds one without an ID, for which IdentifyLease must give one before the next call. There are never more
// than count in flight at an instant, except by Force.
type conc struct{ held }

func (*conc) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	leases := st.Leases()
	used := leases.InUse(nowNS)
	taken, waits := l.counts(used, cost, mode)
	if taken {
		leases.Forget(nowNS)
		leases.Add(lease.Lease{ExpiryNS: now + uint64(l.PeriodNS), Cost: min(cost, max(0, mostUsed-int64(used)))})
		used = min(used+uint64(cost), mostUsed)
	}
	o := l.used(used, leases.LastExpiryNS(), now)
	if waits {
		o.retryNS = leases.FallsToNS(uint64(l.Count-cost)) - now
	}
	return o
}

func (*conc) holds(_ *Limit, st *State, nowNS, cost int64) bool {
	return st.Leases().InUse(nowNS)+uint64(cost) <= MaxCost
}

func (*conc) give(_ *Limit, st *State, nowNS, n int64) int64 { return st.Leases().Give(nowNS, n) }

// fit makes room for one more lease.
func (*conc) fit(_ *Limit, st *State, nowNS, _ int64) (words int) {
	st.Leases().Forget(nowNS)
	return st.Leases().Fit(1)
}

func (*conc) fits(_ *Limit, st State) bool { return st.Leases().Fits(1) }

// IdentifyLease names the lease that Decide has just added to a limit of algo=conc: the lease gets all of id except its times and its cost.
// It does nothing where there is none.
func (l *Limit) IdentifyLease(st *State, nowNS int64, id lease.Lease) {
	st.Leases().Identify(uint64(nowNS+l.PeriodNS), id)
}

// held is the companion of another state: leases that decide nothing.
type held struct{ plain }

func (*held) decide(*Limit, *State, int64, int64, Mode) outcome { return outcome{} }

func (*held) end(_, b uint64, ring []uint64, _ uint64) uint64 {
	return lease.SetIn(&b, &ring).LastExpiryNS()
}

func (*held) give(*Limit, *State, int64, int64) int64 { return 0 }

func (*held) giveBack(*Limit, *State, int64, []lease.Lease) {}

func (*held) shift(_ Shape, st *State, ns int64) {
	st.Leases().Shift(func(at uint64) uint64 { return ShiftInstant(at, ns) })
}

func (*held) appendText(b []byte, _ Shape, st State) []byte {
	return st.Leases().AppendText(append(b, " leases="...))
}

func (*held) read(r *stateReader, _ *Limit) (st State) {
	text := r.field("leases")
	r.bad = r.bad || !st.Leases().Parse(text, latestEnd)
	return st
}
