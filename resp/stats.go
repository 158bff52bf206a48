package resp

import (
	"bytes"
	"sync/atomic"

	"celld/resp/command"
	"celld/store/remote"
)

// serverStats are the counts behind INFO and what else tells of the server. They only grow: CONFIG RESETSTAT moves the baseline
// from which INFO counts, and leaves the totals.
type serverStats struct {
	connections       atomic.Int64
	rejectedClients   atomic.Int64
	failedHandshakes  atomic.Int64
	failedReloads     atomic.Int64
	deniedClients     atomic.Int64
	commands          laned
	inputBytes        laned
	outputBytes       laned
	errorReplies      atomic.Int64
	protocolErrors    atomic.Int64
	queryLimitCloses  atomic.Int64
	outputLimitCloses atomic.Int64
	idleCloses        atomic.Int64
	panics            atomic.Int64
	peakBytes         atomic.Int64 // the most heap in use that the cron saw
	wrongPasswords    atomic.Int64
	deniedCommands    atomic.Int64 // by users' rights, as the next
	deniedKeys        atomic.Int64
	deniedCerts       atomic.Int64 // that name no user
	decisions         *decisionRows
	waits             waitTimes
	clockSteps        atomic.Int64 // how often the wall clock was set
	commandsPerSecond atomic.Int64 // of the last second; the cron updates this and the next two
	inputPerSecond    atomic.Int64
	outputPerSecond   atomic.Int64
	droppedLines      func() int64  // of the log
	engine            *remote.Stats // of the store's engine; zeros where there is none
	errors            errorStats    // CONFIG RESETSTAT empties it
	baseline          atomic.Pointer[[]int64]
}

func newServerStats() serverStats {
	return serverStats{droppedLines: func() int64 { return 0 }, commands: newLaned(), inputBytes: newLaned(), outputBytes: newLaned(), decisions: newDecisionRows(), engine: &remote.Stats{}}
}

// statsOf are a row's counters.
func statsOf(row *command.Row) *commandStats { return row.Stats.(*commandStats) }

// commandStats are one row's counters, for INFO commandstats.
type commandStats struct {
	lanes    atomic.Pointer[[]commandLane]
	rejected atomic.Int64 // refused before they ran
	failed   atomic.Int64 // answered with an error
}

// commandLane has what each batch counts: see countLanes.
type commandLane struct {
	calls atomic.Int64
	ns    atomic.Int64
	times atomic.Pointer[times]
	_     [40]byte // up to a cache line
}

func (st *commandStats) lane(n uint8) *commandLane {
	lanes := st.lanes.Load()
	if lanes == nil {
		made := make([]commandLane, countLanes())
		st.lanes.CompareAndSwap(nil, &made)
		lanes = st.lanes.Load()
	}
	return &(*lanes)[int(n)&(len(*lanes)-1)]
}

// each calls fn for the lanes, of which there are none before the first call.
func (st *commandStats) each(fn func(*commandLane)) {
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
		l.times.CompareAndSwap(nil, &times{})
		if t = l.times.Load(); t == nil { // reset meanwhile
			return
		}
	}
	t.add(eachNS, n)
}

// read adds up the lanes. times is nil where no call was timed.
func (st *commandStats) read() (calls, ns int64, times *timesRead) {
	st.each(func(l *commandLane) {
		calls += l.calls.Load()
		ns += l.ns.Load()
		if t := l.times.Load(); t != nil {
			if times == nil {
				times = &timesRead{}
			}
			t.read(times)
		}
	})
	return calls, ns, times
}

func (st *commandStats) reset() {
	st.rejected.Store(0)
	st.failed.Store(0)
	st.each(func(l *commandLane) {
		l.calls.Store(0)
		l.ns.Store(0)
		l.times.Store(nil)
	})
}

// rejected counts a command that was refused before it ran, and its error.
func (st *serverStats) rejected(row *command.Row, text string) {
	st.errorReplies.Add(1)
	st.errors.count([]byte("-" + text))
	if row != nil {
		statsOf(row).rejected.Add(1)
	}
}

// failed counts a command whose reply is an error, and the error. Errors that a script passes on have been counted before.
func (s *Session) failed(row *command.Row, reply []byte) {
	if s.scratch.visit != nil {
		reply, passedOn := bytes.Clone(reply), s.scratch.passedOn
		s.scratch.passedOn = false
		s.once(func() {
			s.scratch.passedOn = passedOn
			s.failed(row, reply)
		})
		return
	}
	statsOf(row).failed.Add(1)
	if s.scratch.passedOn {
		s.scratch.passedOn = false
		return
	}
	s.srv.stats.errorReplies.Add(1)
	s.srv.stats.errors.count(reply)
}

// batchStats gathers the counts of a batch: 64 decisions then cost one addition to shared memory instead of 64, and one more
// reading of the clock instead of 128.
type batchStats struct {
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

func (b *batchStats) count(row *command.Row, n int64, lane uint8) {
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
	statsOf(row).lane(lane).calls.Add(n)
}

// countSlow counts a command that was timed by itself, or that ran inside EXEC, which was.
func (b *batchStats) countSlow(row *command.Row, tookNS int64, inExec bool, lane uint8) {
	b.calls++
	if !inExec {
		b.slowNS += tookNS
	}
	statsOf(row).lane(lane).timed(1, tookNS)
}

// finish adds the counts to the server's at the end of a batch, and returns the time of that, in Unix nanoseconds.
func (b *batchStats) finish(s *Session) (nowNS int64) {
	srv, lane := s.srv, s.scratch.lane
	if b.calls > 0 {
		srv.stats.commands.Add(lane, b.calls)
	}
	if b.calls > 0 || !s.scratch.decided.empty() { // none where what is decided was asked for before
		s.countDecisions()
	}
	nowNS = b.startNS + b.slowNS
	if b.fast > 0 {
		nowNS = srv.clock()
		eachNS := max(0, nowNS-b.startNS-b.slowNS) / b.fast
		srv.slow(eventFastCommand, nowNS, eachNS)
		for _, run := range b.runs {
			if run.row == nil {
				break
			}
			statsOf(run.row).lane(lane).timed(run.n, eachNS)
		}
	}
	*b = batchStats{}
	return nowNS
}
