package resp

import (
	"fmt"
	"runtime"
	"strings"

	"celld/cell"
	"celld/persistence"
	"celld/resp/command"
)

// Metric is one value for Prometheus.
type Metric struct {
	Name, Help string
	Labels     []string // a name, its value, and so on
	Value      float64
	Total      bool       // it only grows
	Histogram  *Histogram // in place of Value
}

// Metrics reads all counters and states. No label has a key. It takes 1 ms with a million keys, as INFO does, and holds up no event loop.
func (srv *Server) Metrics() []Metric {
	nowNS := srv.clock()
	keys := srv.store.Stats(nowNS)
	m := metricList{}
	m.gauge("celld_build_info", "The version, as labels.", 1, "version", srv.version, "go_version", runtime.Version())
	m.decisions(srv.LimitCounts())
	for _, row := range srv.stats.counters(keys) {
		if name, labels := splitMetric(row.metric); name != "" && name != "celld_decisions_total" {
			m.total(name, row.help, float64(row.total), labels...)
		}
	}
	if srv.engine == nil {
		m.gauge("celld_keys", "Keys in the table.", float64(srv.store.Len(nowNS)))
		m.gauge("celld_keys_bytes", "Memory of keys, by estimate, as maxmemory counts it.", float64(keys.Bytes))
		m.gauge("celld_keys_probation", "Keys that were seen once.", float64(keys.Probation))
		m.gauge("celld_keys_protected", "Keys that were seen again.", float64(keys.Protected))
	} else {
		m.engine(srv.engine)
	}
	m.gauge("celld_max_keys", "Most keys, by max-keys.", float64(srv.cfg.MaxKeys()))
	m.gauge("celld_maxmemory_bytes", "Most memory of keys, by maxmemory; 0: no bound.", float64(srv.cfg.MaxMemory()))
	m.gauge("celld_connections", "Connections of clients.", float64(srv.clientCount()))
	m.gauge("celld_maxclients", "Most connections of clients.", float64(srv.cfg.MaxClients()))
	callers, waited := srv.leases.Waiting()
	m.gauge("celld_waiting_calls", "Calls that wait for their turn.", float64(callers))
	m.gauge("celld_waiting_keys", "Keys that they wait for.", float64(waited))
	m.gauge("celld_max_waiters", "Most calls that may wait.", float64(srv.cfg.maxWaiters.Get()))
	m.list = append(m.list, Metric{Name: "celld_wait_duration_seconds", Help: "How long calls with WAIT waited that were granted.", Histogram: srv.stats.waits.histogram()})
	m.gauge("celld_loading", "1 while files are read.", flagValue(srv.gate.has(gateLoading)))
	m.gauge("celld_script_busy", "1 while a script has run for more than lua-time-limit, so that nobody else is answered.", flagValue(srv.gate.has(gateBusy)))
	if srv.engine == nil {
		m.files(srv, srv.persist.Status())
	}
	m.process(float64(srv.store.WallNS(srv.bornNS)) / 1e9)
	if k := srv.cfg.tls.keeper; k != nil {
		m.gauge("celld_tls_cert_not_after_timestamp_seconds", "When the first of the server's certificates ends.", float64(k.NotAfter().Unix()))
	}
	srv.commands.Each(func(row *command.Row) {
		if _, ns, times := statsOf(row).read(); times != nil {
			m.list = append(m.list, Metric{Name: "celld_command_duration_seconds", Help: "How long commands took; those of a pipeline take the mean of their batch.",
				Labels: []string{"command", row.FullName()}, Histogram: times.histogram(ns)})
		}
	})
	return m.list
}

type metricList struct{ list []Metric }

func (m *metricList) gauge(name, help string, value float64, labels ...string) {
	m.list = append(m.list, Metric{Name: name, Help: help, Value: value, Labels: labels})
}

func (m *metricList) total(name, help string, value float64, labels ...string) {
	m.list = append(m.list, Metric{Name: name, Help: help, Value: value, Labels: labels, Total: true})
}

// decisions tells calls apart by their limits. Parameters of CL.THROTTLE are limits without a name. A policy's name may be no UTF-8, which
// labels must be.
func (m *metricList) decisions(counts []LimitCounts) {
	add := func(command string, c LimitCounts, decision string, n int64) {
		if n > 0 || command == "cl.throttle" && c.Policy == "" && c.Algorithm == cell.GCRA.String() { // so that there always are some
			m.total("celld_decisions_total", decisionsHelp, float64(n), "command", command, "policy", printable(c.Policy), "algorithm", c.Algorithm, "decision", decision)
		}
	}
	for _, c := range counts {
		add("cl.throttle", c, "allowed", c.ThrottleAllowed)
		add("cl.throttle", c, "limited", c.ThrottleLimited)
		add("cl.take", c, "allowed", c.TakeAllowed)
		add("cl.take", c, "limited", c.TakeLimited)
	}
}

func (m *metricList) files(srv *Server, st persistence.Status) {
	m.gauge("celld_snapshot_last_timestamp_seconds", "When the last good snapshot was taken, or the start.", float64(srv.store.WallNS(st.LastSaveNS))/1e9)
	m.gauge("celld_snapshot_changes", "Changes since then.", float64(st.ChangesSince))
	m.gauge("celld_snapshot_failed", "1 if the last snapshot failed.", flagValue(st.SaveErr != nil))
	m.gauge("celld_snapshot_duration_seconds", "How long the last snapshot took.", float64(max(st.SaveTookNS, 0))/1e9)
	m.total("celld_snapshots_total", "Snapshots that were taken.", float64(st.Saves))
	m.gauge("celld_aof_enabled", "1 with an append-only file.", flagValue(st.AOF))
	m.gauge("celld_aof_size_bytes", "Size of the append-only file.", float64(st.AOFSize))
	m.gauge("celld_aof_base_size_bytes", "Its size after the last rewrite.", float64(st.AOFBaseSize))
	m.gauge("celld_aof_pending_bytes", "Changes that are not written yet.", float64(st.AOFPending))
	m.gauge("celld_aof_failed", "1 while changes do not reach the append-only file.", flagValue(st.AOFErr != nil))
	m.total("celld_aof_write_failures_total", "Writes that failed.", float64(st.AOFFailures))
	m.total("celld_aof_fsyncs_total", "Times that the append-only file was brought to the disk.", float64(st.AOFSyncs))
	m.total("celld_aof_fsync_seconds_total", "Seconds that this took.", float64(st.AOFSyncNS)/1e9)
	m.total("celld_aof_rewrites_total", "Rewrites of the append-only file.", float64(st.Rewrites))
	m.gauge("celld_aof_rewrite_failed", "1 if the last rewrite failed.", flagValue(st.RewriteErr != nil))
}

func (m *metricList) engine(e engine) {
	facts := map[string]string{}
	for _, fact := range e.Facts() {
		facts[fact.Name] = fact.Value
	}
	m.gauge("celld_store_info", "The store, as labels: its kind, and who decides (engine, or what store-failure says while it is away).", 1,
		"kind", facts["store_engine_kind"], "mode", facts["store_mode"])
	m.gauge("celld_store_away", "1 while the store does not answer.", number(facts["store_away"]))
	if n, known := facts["store_slots_without_master"]; known {
		m.gauge("celld_store_slots_without_master", "Slots of the store's Cluster whose keys nobody serves.", number(n))
	}
	m.gauge("celld_store_waiting_bytes", "Bytes of calls that wait for the store.", number(facts["store_waiting_bytes"]))
}

func number(text string) (n float64) {
	_, _ = fmt.Sscan(text, &n) // it is 0 where that is none
	return n
}

func flagValue(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// splitMetric reads the name and labels of a counter's row.
func splitMetric(text string) (name string, labels []string) {
	name, rest, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	for part := range strings.SplitSeq(rest, ",") {
		if label, value, ok := strings.Cut(part, "="); ok {
			labels = append(labels, label, strings.Trim(value, `"`))
		}
	}
	return name, labels
}
