package stats

import (
	"fmt"
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/metrics"
	"celld/store"
	"celld/store/memory"
)

// Server is the counts of the whole server. They only grow.
type Server struct {
	Connections       atomic.Int64
	RejectedClients   atomic.Int64
	FailedHandshakes  atomic.Int64
	DeniedClients     atomic.Int64
	Commands          Counter
	InputBytes        Counter
	OutputBytes       Counter
	ErrorReplies      atomic.Int64
	ProtocolErrors    atomic.Int64
	QueryLimitCloses  atomic.Int64
	OutputLimitCloses atomic.Int64
	IdleCloses        atomic.Int64
	Panics            atomic.Int64
	WrongPasswords    atomic.Int64
	DeniedCommands    atomic.Int64 // by users' rights, as the next
	DeniedKeys        atomic.Int64
	DeniedCerts       atomic.Int64 // that name no user
	Waits             Waits
	ClockSteps        atomic.Int64 // how often the wall clock was set
	CommandsPerSecond atomic.Int64 // of the last second; the cron updates this and the next two
	InputPerSecond    atomic.Int64
	OutputPerSecond   atomic.Int64
	DroppedLines      func() int64        // of the log
	Engine            func() store.Counts // zeros where there is none
	Errors            ErrorWords          // CONFIG RESETSTAT empties it
}

// NewServer returns counts of 0.
func NewServer() *Server {
	return &Server{DroppedLines: func() int64 { return 0 }, Commands: NewCounter(), InputBytes: NewCounter(), OutputBytes: NewCounter(),
		Engine: func() (n store.Counts) { return n }}
}

// DeclareTraffic declares the first part of INFO's section Stats.
func (st *Server) DeclareTraffic(l *metrics.List, keys *memory.Stats) {
	const forbidden = "Commands refused for lack of a right."
	l.Counter(metrics.Metric{Field: "total_connections_received", Name: "celld_connections_received_total", JSON: "connections.received",
		Help: "Connections that were served.", Value: st.Connections.Load()})
	l.Counter(metrics.Metric{Field: "total_commands_processed", Name: "celld_commands_processed_total", Help: "Commands that ran.",
		Value: st.Commands.Load()})
	l.Field("instantaneous_ops_per_sec", st.CommandsPerSecond.Load())
	l.Counter(metrics.Metric{Field: "total_net_input_bytes", Name: "celld_net_input_bytes_total", Help: "Bytes that clients sent.",
		Value: st.InputBytes.Load()})
	l.Counter(metrics.Metric{Field: "total_net_output_bytes", Name: "celld_net_output_bytes_total", Help: "Bytes of replies.",
		Value: st.OutputBytes.Load()})
	l.Field("instantaneous_input_kbps", kilobytes(st.InputPerSecond.Load()))
	l.Field("instantaneous_output_kbps", kilobytes(st.OutputPerSecond.Load()))
	l.Counter(metrics.Metric{Field: "rejected_connections", Name: "celld_connections_rejected_total", JSON: "connections.refused",
		Help: "Connections refused at maxclients, or that could not be served.", Value: st.RejectedClients.Load()})
	l.Counter(metrics.Metric{Field: "denied_connections", Name: "celld_connections_denied_total", JSON: "connections.refused",
		Help: "Connections refused by protected mode.", Value: st.DeniedClients.Load()})
	l.Counter(metrics.Metric{Field: "expired_keys", Name: "celld_keys_expired_total", JSON: "keys.expired",
		Help: "Keys that expired.", Value: keys.Expired})
	l.Counter(metrics.Metric{Field: "evicted_keys", Name: "celld_keys_evicted_total", JSON: "keys.evicted",
		Help: "Limits and counts in use that were removed to make room.", Value: keys.Evicted})
	l.Counter(metrics.Metric{Field: "full_refusals", Name: "celld_full_refusals_total",
		Help: "Changes refused because the table was full.", Value: keys.Refused})
	l.Counter(metrics.Metric{Field: "keyspace_hits", Name: "celld_keyspace_hits_total", Help: "Lookups that found their key.",
		Value: keys.Hits})
	l.Counter(metrics.Metric{Field: "keyspace_misses", Name: "celld_keyspace_misses_total", Help: "Lookups that found no key.",
		Value: keys.Misses})
	l.Counter(metrics.Metric{Field: "total_error_replies", Name: "celld_error_replies_total", JSON: "error_replies",
		Help: "Error replies.", Value: st.ErrorReplies.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_auth", Name: "celld_wrong_passwords_total", Help: "Wrong passwords.",
		Value: st.WrongPasswords.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_cmd", Name: "celld_forbidden_total", Labels: []string{"reason", "command"},
		Help: forbidden, Value: st.DeniedCommands.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_key", Name: "celld_forbidden_total", Labels: []string{"reason", "key"},
		Help: forbidden, Value: st.DeniedKeys.Load()})
	l.Counter(metrics.Metric{Field: "acl_access_denied_tls_cert", Name: "celld_certificates_without_user_total",
		Help: "Connections whose certificate names no active user.", Value: st.DeniedCerts.Load()})
}

// DeclareTroubles declares its last part.
func (st *Server) DeclareTroubles(l *metrics.List) {
	l.Counter(metrics.Metric{Field: "clock_steps", Name: "celld_clock_steps_total", Help: "Times that the wall clock was set.",
		Value: st.ClockSteps.Load()})
	l.Counter(metrics.Metric{Field: "protocol_errors", Name: "celld_protocol_errors_total",
		Help: "Connections closed after a protocol error.", Value: st.ProtocolErrors.Load()})
	l.Counter(metrics.Metric{Field: "client_query_buffer_limit_disconnections", Name: "celld_query_buffer_limit_disconnections_total",
		Help: "Connections closed at client-query-buffer-limit.", Value: st.QueryLimitCloses.Load()})
	l.Counter(metrics.Metric{Field: "client_output_buffer_limit_disconnections", Name: "celld_output_buffer_limit_disconnections_total",
		Help: "Connections closed at client-output-buffer-limit.", Value: st.OutputLimitCloses.Load()})
	l.Counter(metrics.Metric{Field: "idle_disconnections", Name: "celld_idle_disconnections_total",
		Help: "Idle connections closed at timeout.", Value: st.IdleCloses.Load()})
	l.Counter(metrics.Metric{Field: "log_lines_dropped", Name: "celld_log_lines_dropped_total",
		Help: "Log lines dropped because nobody read them.", Value: st.DroppedLines()})
	l.Counter(metrics.Metric{Field: "handler_panics", Name: "celld_handler_panics_total",
		Help: "Faults in celld; each closed one connection.", Value: st.Panics.Load()})
	metrics.EngineCounters(l, st.Engine())
	l.Counter(metrics.Metric{Field: "tls_handshake_failures", Name: "celld_tls_handshake_failures_total",
		Help: "TLS handshakes that failed.", Value: st.FailedHandshakes.Load()})
	l.Histogram(metrics.Metric{Name: "celld_wait_duration_seconds", JSON: "waiting.granted",
		Help: "How long granted calls with WAIT waited.", Value: st.Waits.Histogram()})
}

func kilobytes(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1024) }

// Rejected counts a command that was refused before it ran, and its error.
func (st *Server) Rejected(row *command.Row, text string) {
	st.ErrorReplies.Add(1)
	st.Errors.Count([]byte("-" + text))
	if row != nil {
		Of(row).Rejected.Add(1)
	}
}
