package resp

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/metrics"
	"celld/store"
	"celld/store/remote"
)

// serverStats count what the server does. They only grow.
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
}

func newServerStats() serverStats {
	return serverStats{droppedLines: func() int64 { return 0 }, commands: newLaned(), inputBytes: newLaned(), outputBytes: newLaned(), decisions: newDecisionRows(), engine: &remote.Stats{}}
}

// statsOf are a row's counters.
func statsOf(row *command.Row) *commandStats { return row.Stats.(*commandStats) }

func (srv *Server) declareStats(l *metrics.List) { srv.stats.declare(l, l.Keys(srv.store)) }

// declare declares INFO's section Stats.
func (st *serverStats) declare(l *metrics.List, keys *store.Stats) {
	const forbidden = "Commands refused as their user may not run them, or not on that key."
	l.Counter(metrics.Metric{Field: "total_connections_received", Name: "celld_connections_received_total", JSON: "connections.received",
		Help: "Connections that were accepted and served.", Value: st.connections.Load()})
	l.Counter(metrics.Metric{Field: "total_commands_processed", Name: "celld_commands_processed_total", Help: "Commands that ran.", Value: st.commands.Load()})
	l.Field("instantaneous_ops_per_sec", st.commandsPerSecond.Load())
	l.Counter(metrics.Metric{Field: "total_net_input_bytes", Name: "celld_net_input_bytes_total", Help: "Bytes that clients sent.", Value: st.inputBytes.Load()})
	l.Counter(metrics.Metric{Field: "total_net_output_bytes", Name: "celld_net_output_bytes_total", Help: "Bytes of replies.", Value: st.outputBytes.Load()})
	l.Field("instantaneous_input_kbps", kilobytes(st.inputPerSecond.Load()))
	l.Field("instantaneous_output_kbps", kilobytes(st.outputPerSecond.Load()))
	l.Counter(metrics.Metric{Field: "rejected_connections", Name: "celld_connections_rejected_total", JSON: "connections.refused",
		Help: "Connections refused because maxclients were open, or because they could not be served.", Value: st.rejectedClients.Load()})
	l.Counter(metrics.Metric{Field: "denied_connections", Name: "celld_connections_denied_total", JSON: "connections.refused",
		Help: "Connections that protected mode refused.", Value: st.deniedClients.Load()})
	l.Counter(metrics.Metric{Field: "expired_keys", Name: "celld_keys_expired_total", JSON: "keys.expired", Help: "Keys removed because they had expired.", Value: keys.Expired})
	l.Counter(metrics.Metric{Field: "evicted_keys", Name: "celld_keys_evicted_total", JSON: "keys.evicted", Help: "Limits in use that were removed to make room.", Value: keys.Evicted})
	l.Counter(metrics.Metric{Field: "keyspace_hits", Name: "celld_keyspace_hits_total", Help: "Lookups that found their key.", Value: keys.Hits})
	l.Counter(metrics.Metric{Field: "keyspace_misses", Name: "celld_keyspace_misses_total", Help: "Lookups that did not find their key.", Value: keys.Misses})
	l.Counter(metrics.Metric{Field: "total_error_replies", Name: "celld_error_replies_total", JSON: "error_replies", Help: "Replies that were errors.", Value: st.errorReplies.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_auth", Name: "celld_wrong_passwords_total", Help: "Wrong passwords.", Value: st.wrongPasswords.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_cmd", Name: "celld_forbidden_total", Labels: []string{"reason", "command"}, Help: forbidden, Value: st.deniedCommands.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_key", Name: "celld_forbidden_total", Labels: []string{"reason", "key"}, Help: forbidden, Value: st.deniedKeys.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_tls_cert", Name: "celld_certificates_without_user_total",
		Help: "Connections whose certificate names no user who may authenticate.", Value: st.deniedCerts.Load()})
	st.decisions.declare(l)
	l.Counter(metrics.Metric{Field: "clock_steps", Name: "celld_clock_steps_total", Help: "Times that the wall clock was set.", Value: st.clockSteps.Load()})
	l.Counter(metrics.Metric{Field: "protocol_errors", Name: "celld_protocol_errors_total", Help: "Connections closed because of a protocol error.", Value: st.protocolErrors.Load()})
	l.Counter(metrics.Metric{Field: "client_query_buffer_limit_disconnections", Name: "celld_query_buffer_limit_disconnections_total",
		Help: "Connections closed at client-query-buffer-limit.", Value: st.queryLimitCloses.Load()})
	l.Counter(metrics.Metric{Field: "client_output_buffer_limit_disconnections", Name: "celld_output_buffer_limit_disconnections_total",
		Help: "Connections closed at client-output-buffer-limit.", Value: st.outputLimitCloses.Load()})
	l.Counter(metrics.Metric{Field: "idle_disconnections", Name: "celld_idle_disconnections_total", Help: "Connections closed because they were idle for timeout seconds.", Value: st.idleCloses.Load()})
	l.Counter(metrics.Metric{Field: "log_lines_dropped", Name: "celld_log_lines_dropped_total", Help: "Lines of the log that were dropped as nobody read it.", Value: st.droppedLines()})
	l.Counter(metrics.Metric{Field: "handler_panics", Name: "celld_handler_panics_total", Help: "Panics that cost one connection.", Value: st.panics.Load()})
	metrics.EngineCounters(l, st.engine)
	l.Counter(metrics.Metric{Field: "tls_handshake_failures", Name: "celld_tls_handshake_failures_total", Help: "TLS connections whose handshake failed.", Value: st.failedHandshakes.Load()})
	l.Counter(metrics.Metric{Field: "tls_reload_failures", Name: "celld_tls_reload_failures_total", Help: "Changes of the certificates' files that could not be used.", Value: st.failedReloads.Load()})
	l.Histogram(metrics.Metric{Name: "celld_wait_duration_seconds", JSON: "waiting.granted", Help: "How long calls with WAIT waited that were granted.", Value: st.waits.histogram()})
}

func kilobytes(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1024) }

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
