package resp

import "sync/atomic"

// serverStats are the counts behind INFO and what else tells of the server. They only grow: CONFIG RESETSTAT moves the baseline
// from which INFO counts, and leaves the totals.
type serverStats struct {
	connections       atomic.Int64
	rejectedClients   atomic.Int64
	deniedClients     atomic.Int64
	commands          atomic.Int64
	inputBytes        atomic.Int64
	outputBytes       atomic.Int64
	errorReplies      atomic.Int64
	protocolErrors    atomic.Int64
	queryLimitCloses  atomic.Int64
	outputLimitCloses atomic.Int64
	idleCloses        atomic.Int64
	panics            atomic.Int64
	peakBytes         atomic.Int64 // the most heap in use that the cron saw
	wrongPasswords    atomic.Int64
	decisions         decisionCounters
	clockSteps        atomic.Int64 // how often the wall clock was set
	commandsPerSecond atomic.Int64 // of the last second; the cron updates this and the next two
	inputPerSecond    atomic.Int64
	outputPerSecond   atomic.Int64
	errors            errorStats // CONFIG RESETSTAT empties it
	baseline          atomic.Pointer[[]int64]
}

// commandStats are one row's counters, for INFO commandstats.
type commandStats struct {
	calls    atomic.Int64
	ns       atomic.Int64
	rejected atomic.Int64 // refused before they ran
	failed   atomic.Int64 // answered with an error
	times    atomic.Pointer[times]
}

// timed counts n calls of this duration each.
func (st *commandStats) timed(n, eachNS int64) {
	st.calls.Add(n)
	st.ns.Add(n * eachNS)
	t := st.times.Load()
	if t == nil {
		st.times.CompareAndSwap(nil, &times{})
		if t = st.times.Load(); t == nil { // reset meanwhile
			return
		}
	}
	t.add(eachNS, n)
}

func (st *commandStats) reset() {
	for _, n := range []*atomic.Int64{&st.calls, &st.ns, &st.rejected, &st.failed} {
		n.Store(0)
	}
	st.times.Store(nil)
}

// rejected counts a command that was refused before it ran, and its error.
func (st *serverStats) rejected(row *command, text string) {
	st.errorReplies.Add(1)
	st.errors.count([]byte("-" + text))
	if row != nil {
		row.stats.rejected.Add(1)
	}
}

// failed counts a command whose reply is an error, and the error. Errors that a script passes on have been counted before.
func (s *Session) failed(row *command, reply []byte) {
	row.stats.failed.Add(1)
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
	decided decisions
}

type commandRun struct {
	row *command
	n   int64
}

func (b *batchStats) count(row *command, n int64) {
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
	row.stats.calls.Add(n)
}

// countSlow counts a command that was timed by itself, or that ran inside EXEC, which was.
func (b *batchStats) countSlow(row *command, tookNS int64, inExec bool) {
	b.calls++
	if !inExec {
		b.slowNS += tookNS
	}
	row.stats.timed(1, tookNS)
}

// finish adds the counts to the server's at the end of a batch, and returns the time of that, in Unix nanoseconds.
func (b *batchStats) finish(s *Session) (nowNS int64) {
	srv := s.srv
	if b.calls > 0 {
		srv.stats.commands.Add(b.calls)
	}
	if b.calls > 0 || b.decided != (decisions{}) { // none where what is decided was asked for before
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
			run.row.stats.timed(run.n, eachNS)
		}
	}
	*b = batchStats{}
	return nowNS
}
