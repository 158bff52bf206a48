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

// commandLane counts what batches of one lane do: see Lanes.
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

// Total is how many calls there were, and how many nanoseconds those of them took that were timed.
func (st *Command) Total() (calls, ns int64) {
	st.each(func(l *commandLane) {
		calls += l.calls.Load()
		ns += l.ns.Load()
	})
	return calls, ns
}

// Read adds up the lanes. times, of 24 KB, is nil where no call was timed.
func (st *Command) Read() (calls, ns int64, times *TimesRead) {
	if calls, ns = st.Total(); calls == 0 {
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

// Batch gathers the counts of a batch: 64 decisions then cost one addition to shared memory instead of 64, and one more
// reading of the clock instead of 128.
type Batch struct {
	startNS int64
	slowNS  int64 // time of the commands that were timed one by one
	calls   int64
	fast    int64         // how many of them share the rest of the batch's time
	runs    [4]commandRun // a pipeline has few kinds of commands; a fifth kind is counted at once
}

type commandRun struct {
	row *command.Row
	n   int64
}

// Count counts n calls of a fast command, which share the batch's time.
func (b *Batch) Count(row *command.Row, n int64, lane uint8) {
	b.calls += n
	b.fast += n
	for i := range b.runs {
		run := &b.runs[i]
		if run.row == nil {
			run.row = row
		}
		if run.row == row {
			run.n += n
			return
		}
	}
	Of(row).lane(lane).calls.Add(n)
}

// CountSlow counts a command that was timed by itself, or that ran inside EXEC, which was.
func (b *Batch) CountSlow(row *command.Row, tookNS int64, inExec bool, lane uint8) {
	b.calls++
	if !inExec {
		b.slowNS += tookNS
	}
	Of(row).lane(lane).timed(1, tookNS)
}

// Begin begins a batch.
func (b *Batch) Begin(nowNS int64) { b.startNS = nowNS }

// TookNS notes time that is no fast command's.
func (b *Batch) TookNS(ns int64) { b.slowNS += ns }

// Calls is how many calls the batch has counted.
func (b *Batch) Calls() int64 { return b.calls }

// Finish adds the counts to the rows at the end of a batch. It returns the time of that, in Unix nanoseconds, and how long each of the fast
// commands took, of which there may be none.
func (b *Batch) Finish(clock func() int64, lane uint8) (nowNS, eachNS int64, fast bool) {
	nowNS, fast = b.startNS+b.slowNS, b.fast > 0
	if fast {
		nowNS = clock()
		eachNS = max(0, nowNS-b.startNS-b.slowNS) / b.fast
		for _, run := range b.runs {
			if run.row == nil {
				break
			}
			Of(run.row).lane(lane).timed(run.n, eachNS)
		}
	}
	*b = Batch{}
	return nowNS, eachNS, fast
}
