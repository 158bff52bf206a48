package stats

import (
	"sync/atomic"

	"celld/resp/command"
)

// Of are a row's counters.
func Of(row *command.Row) *Command { return row.Stats.(*Command) }

// Command is one row's counters, for INFO commandstats.
type Command struct {
	lanes    atomic.Pointer[[]commandLane]
	Rejected atomic.Int64 // refused before they ran
	Failed   atomic.Int64 // answered with an error
}

// commandLane has what each batch counts: see Lanes.
type commandLane struct {
	calls atomic.Int64
	ns    atomic.Int64
	times atomic.Pointer[Times]
	_     [40]byte // up to a cache line
}

func (st *Command) lane(n uint8) *commandLane {
	lanes := st.lanes.Load()
	if lanes == nil {
		made := make([]commandLane, Lanes())
		st.lanes.CompareAndSwap(nil, &made)
		lanes = st.lanes.Load()
	}
	return &(*lanes)[int(n)&(len(*lanes)-1)]
}

// each calls fn for the lanes, of which there are none before the first call.
func (st *Command) each(fn func(*commandLane)) {
	if lanes := st.lanes.Load(); lanes != nil {
		for i := range *lanes {
			fn(&(*lanes)[i])
		}
	}
}

// timed counts n calls of this duration each.
func (l *commandLane) timed(n, eachNS int64) {
	l.calls.Add(n)
	l.ns.Add(n * eachNS)
	t := l.times.Load()
	if t == nil {
		l.times.CompareAndSwap(nil, &Times{})
		if t = l.times.Load(); t == nil { // reset meanwhile
			return
		}
	}
	t.Add(eachNS, n)
}

// Read adds up the lanes. times is nil where no call was timed.
func (st *Command) Read() (calls, ns int64, times *TimesRead) {
	st.each(func(l *commandLane) {
		calls += l.calls.Load()
		ns += l.ns.Load()
	})
	if calls == 0 {
		return 0, ns, nil
	}
	times = &TimesRead{}
	if st.AddTo(times); times.Calls == 0 {
		times = nil
	}
	return calls, ns, times
}

// AddTo adds the durations of calls to others.
func (st *Command) AddTo(r *TimesRead) {
	st.each(func(l *commandLane) {
		if t := l.times.Load(); t != nil {
			t.Read(r)
		}
	})
}

// Reset forgets all calls.
func (st *Command) Reset() {
	st.Rejected.Store(0)
	st.Failed.Store(0)
	st.each(func(l *commandLane) {
		l.calls.Store(0)
		l.ns.Store(0)
		l.times.Store(nil)
	})
}
