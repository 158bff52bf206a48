package resp

import "celld/store"

// counter is one row of INFO stats.
type counter struct {
	field  string // in INFO
	total  int64  // since the start
	metric string // the total's name and labels for Prometheus, which must not see it fall; empty: INFO alone has it
	help   string
	rate   any // what INFO shows in place of the total: how much the last second had
}

// Metrics that are of several rows have one help.
const (
	decisionsHelp = "Calls that limits allowed or limited. One under several limits counts once, for the limit that binds."
	forbiddenHelp = "Commands refused as their user may not run them, or not on that key."
	shadowHelp    = "What limits with shadow would have decided."
)

// counters returns all rows, in INFO's order.
func (st *serverStats) counters(keys store.Stats) []counter {
	n, e := st.decisions.sum(), st.engine
	return []counter{
		{"total_connections_received", st.connections.Load(), "celld_connections_received_total", "Connections that were accepted and served.", nil},
		{"total_commands_processed", st.commands.Load(), "celld_commands_processed_total", "Commands that ran.", nil},
		{field: "instantaneous_ops_per_sec", rate: st.commandsPerSecond.Load()},
		{"total_net_input_bytes", st.inputBytes.Load(), "celld_net_input_bytes_total", "Bytes that clients sent.", nil},
		{"total_net_output_bytes", st.outputBytes.Load(), "celld_net_output_bytes_total", "Bytes of replies.", nil},
		{field: "instantaneous_input_kbps", rate: kilobytes(st.inputPerSecond.Load())},
		{field: "instantaneous_output_kbps", rate: kilobytes(st.outputPerSecond.Load())},
		{"rejected_connections", st.rejectedClients.Load(), "celld_connections_rejected_total", "Connections refused because maxclients were open, or because they could not be served.", nil},
		{"denied_connections", st.deniedClients.Load(), "celld_connections_denied_total", "Connections that protected mode refused.", nil},
		{"expired_keys", keys.Expired, "celld_keys_expired_total", "Keys removed because they had expired.", nil},
		{"evicted_keys", keys.Evicted, "celld_keys_evicted_total", "Limits in use that were removed to make room.", nil},
		{"keyspace_hits", keys.Hits, "celld_keyspace_hits_total", "Lookups that found their key.", nil},
		{"keyspace_misses", keys.Misses, "celld_keyspace_misses_total", "Lookups that did not find their key.", nil},
		{"total_error_replies", st.errorReplies.Load(), "celld_error_replies_total", "Replies that were errors.", nil},
		{"acl_access_denied_auth", st.wrongPasswords.Load(), "celld_wrong_passwords_total", "Wrong passwords.", nil},
		{"acl_access_denied_cmd", st.deniedCommands.Load(), `celld_forbidden_total{reason="command"}`, forbiddenHelp, nil},
		{"acl_access_denied_key", st.deniedKeys.Load(), `celld_forbidden_total{reason="key"}`, forbiddenHelp, nil},
		{"acl_access_denied_tls_cert", st.deniedCerts.Load(), "celld_certificates_without_user_total", "Connections whose certificate names no user who may authenticate.", nil},
		{"throttle_allowed", n[throttleAllowed], `celld_decisions_total{command="cl.throttle",decision="allowed"}`, decisionsHelp, nil},
		{"throttle_limited", n[throttleLimited], `celld_decisions_total{command="cl.throttle",decision="limited"}`, decisionsHelp, nil},
		{"take_allowed", n[takeAllowed], `celld_decisions_total{command="cl.take",decision="allowed"}`, decisionsHelp, nil},
		{"take_limited", n[takeLimited], `celld_decisions_total{command="cl.take",decision="limited"}`, decisionsHelp, nil},
		{"rule_denied", n[ruleDenied], "celld_rule_denials_total", "Limited calls that a rule denied.", nil},
		{"shadow_limited", n[shadowLimited], `celld_shadow_decisions_total{decision="limited"}`, shadowHelp, nil},
		{"shadow_allowed", n[shadowAllowed], `celld_shadow_decisions_total{decision="allowed"}`, shadowHelp, nil},
		{"clock_steps", st.clockSteps.Load(), "celld_clock_steps_total", "Times that the wall clock was set.", nil},
		{"protocol_errors", st.protocolErrors.Load(), "celld_protocol_errors_total", "Connections closed because of a protocol error.", nil},
		{"client_query_buffer_limit_disconnections", st.queryLimitCloses.Load(), "celld_query_buffer_limit_disconnections_total", "Connections closed at client-query-buffer-limit.", nil},
		{"client_output_buffer_limit_disconnections", st.outputLimitCloses.Load(), "celld_output_buffer_limit_disconnections_total", "Connections closed at client-output-buffer-limit.", nil},
		{"idle_disconnections", st.idleCloses.Load(), "celld_idle_disconnections_total", "Connections closed because they were idle for timeout seconds.", nil},
		{"log_lines_dropped", st.droppedLines(), "celld_log_lines_dropped_total", "Lines of the log that were dropped as nobody read it.", nil},
		{"handler_panics", st.panics.Load(), "celld_handler_panics_total", "Panics that cost one connection.", nil},
		{"store_calls", e.Requests.Load(), "celld_store_commands_total", "Commands sent to the store, each of which may decide many calls.", nil},
		{"store_failures", e.Failures.Load(), "celld_store_failures_total", "Commands that the store did not answer, or with an error that says that it cannot.", nil},
		{"store_timeouts", e.Timeouts.Load(), "celld_store_timeouts_total", "Commands that the store did not answer in time.", nil},
		{"store_conflicts", e.Conflicts.Load(), "celld_store_conflicts_total", "Decisions that were made again as others had changed the key meanwhile.", nil},
		{"store_denials_remembered", e.DenialsAnswered.Load(), "celld_store_denials_remembered_total", "Calls denied without asking the store, as it had just denied their key.", nil},
		{"store_decided_without", e.DecidedWithout.Load(), "celld_store_decided_without_total", "Calls that store-failure allowed, denied or decided by a share while the store did not answer.", nil},
		{"store_refused", e.Refused.Load(), "celld_store_refused_total", "Calls on limits answered with STOREDOWN, as store-failure is error.", nil},
		{"tls_handshake_failures", st.failedHandshakes.Load(), "celld_tls_handshake_failures_total", "TLS connections whose handshake failed.", nil},
		{"tls_reload_failures", st.failedReloads.Load(), "celld_tls_reload_failures_total", "Changes of the certificates' files that could not be used.", nil},
	}
}

// resetCounters has INFO count from now on.
func (st *serverStats) resetCounters(keys store.Stats) {
	rows := st.counters(keys)
	baseline := make([]int64, len(rows))
	for i, row := range rows {
		baseline[i] = row.total
	}
	st.baseline.Store(&baseline)
	st.errors.reset()
}

func infoStats(w *infoWriter, s *Session) {
	s.countDecisions()
	baseline := s.srv.stats.baseline.Load() // before the totals, which only grow
	for i, row := range s.srv.stats.counters(s.srv.store.Stats(s.nowNS)) {
		switch {
		case row.rate != nil:
			w.field(row.field, row.rate)
		case baseline != nil:
			w.field(row.field, row.total-(*baseline)[i])
		default:
			w.field(row.field, row.total)
		}
	}
}
