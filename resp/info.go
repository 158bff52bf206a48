package resp

import (
	"os"
	"runtime"
	"slices"
	"time"

	"celld/resp/metrics"
	"celld/resp/session"
	"celld/resp/transport"
)

// newRegistry declares the sections of INFO, and what /metrics and the live page have beside them. A field has Redis's name if Redis has
// such a field.
func (srv *Server) newRegistry() *metrics.Registry {
	sections := slices.Concat(
		[]metrics.Section{{Name: "Server", ByDefault: true, Read: srv.declareServer}},
		srv.sessions.Sections(),
		[]metrics.Section{
			{Name: "TLS", ByDefault: true, Read: srv.declareTLS},
			{Read: func(l *metrics.List) { metrics.Process(l, srv.sessions.Wall(srv.instance.bornNS)) }},
		})
	return metrics.New(sections...)
}

// Metrics reads all counters and states. No label has a key. It takes 1 ms with a million keys, as INFO does, and holds up no event loop.
// Others add theirs.
func (srv *Server) Metrics(others ...func(*metrics.List)) []metrics.Metric {
	return srv.metrics.Read(srv.sessions.Clock(), others...)
}

func (srv *Server) declareServer(l *metrics.List) {
	uptime := time.Duration(l.NowNS - srv.instance.bornNS)
	l.Gauge(metrics.Metric{Name: "celld_build_info", Help: "The version, as labels.", Labels: []string{"version", srv.instance.version, "go_version", runtime.Version()}, Value: 1})
	l.Field("redis_version", session.RedisVersion)
	l.Gauge(metrics.Metric{Field: "celld_version", JSON: "version", Value: srv.instance.version})
	l.Field("redis_mode", "standalone")
	l.Field("os", runtime.GOOS+" "+runtime.GOARCH)
	l.Field("arch_bits", 32<<(^uint(0)>>63))
	l.Gauge(metrics.Metric{Field: "go_version", JSON: "go", Value: runtime.Version()})
	l.Field("multiplexing_api", multiplexing())
	l.Field("process_id", os.Getpid())
	l.Field("run_id", srv.instance.runID)
	l.Field("tcp_port", srv.sockets.TCPPort())
	l.Field("server_time_usec", srv.sessions.Store.WallNS(l.NowNS)/1e3)
	l.Gauge(metrics.Metric{JSON: "unix_ms", Value: srv.sessions.Wall(l.NowNS)})
	l.Gauge(metrics.Metric{Field: "uptime_in_seconds", JSON: "uptime_ms", Value: uptime})
	l.Field("uptime_in_days", int64(uptime/(24*time.Hour)))
	executable, _ := os.Executable() // empty if the system does not say
	l.Field("executable", executable)
	l.Field("config_file", "")
	srv.sockets.Declare(l)
	l.Field("io_threads_active", srv.sessions.Config.IOThreads.Get())
	if why := srv.NotReady(); why != "" {
		l.Field("not_ready_because", why)
	}
}

func (srv *Server) declareClients(l *metrics.List) {
	l.Gauge(metrics.Metric{Field: "connected_clients", Name: "celld_connections", JSON: "connections.open", Help: "Connections of clients.", Value: srv.sessions.Clients.Count()})
	l.Field("cluster_connections", 0)
	l.Gauge(metrics.Metric{Field: "maxclients", Name: "celld_maxclients", JSON: "connections.most", Help: "Most connections of clients.", Value: srv.sessions.Config.MaxClients.Get()})
	calls, keys := srv.sessions.Port.Waiting()
	l.Gauge(metrics.Metric{Field: "blocked_clients", Name: "celld_waiting_calls", JSON: "waiting.calls", Help: "Calls that wait for their turn.", Value: calls})
	l.Gauge(metrics.Metric{Field: "waiting_keys", Name: "celld_waiting_keys", JSON: "waiting.keys", Help: "Keys that calls wait for.", Value: keys})
	l.Gauge(metrics.Metric{Name: "celld_max_waiters", JSON: "waiting.most", Help: "Most calls that may wait.", Value: srv.sessions.Config.MaxWaiters.Get()})
	l.Field("tracking_clients", srv.sessions.Clients.Tracking())
	l.Field("monitor_clients", len(srv.sessions.Clients.Monitors()))
	l.Field("watching_clients", srv.sessions.Clients.Watching())
}

func (srv *Server) declareMemory(l *metrics.List) {
	srv.sessions.Heap.Declare(l)
	keys := l.Keys(srv.sessions.Store)
	l.InfoOnly = !srv.sessions.Port.Here()
	l.Gauge(metrics.Metric{Field: "used_memory_dataset", Name: "celld_keys_bytes", JSON: "keys.bytes", Help: "Memory of keys, by estimate, as maxmemory counts it.", Value: keys.Bytes})
	scripts, scriptBytes := 0, 0
	if srv.scripts != nil {
		scripts, scriptBytes = srv.scripts.Kept()
	}
	l.Field("number_of_cached_scripts", scripts)
	l.Field("used_memory_scripts", scriptBytes)
	l.Gauge(metrics.Metric{Field: "probation_keys", Name: "celld_keys_probation", Help: "Keys that were seen once.", Value: keys.Probation})
	l.Gauge(metrics.Metric{Field: "protected_keys", Name: "celld_keys_protected", Help: "Keys that were seen again.", Value: keys.Protected})
	l.InfoOnly = false
	most := srv.sessions.Config.MaxMemory.Get()
	l.Gauge(metrics.Metric{Field: "maxmemory", Name: "celld_maxmemory_bytes", JSON: "keys.most_bytes", Help: "Most memory of keys, by maxmemory; 0: no bound.", Value: most})
	l.Field("maxmemory_human", metrics.HumanBytes(most))
	l.Field("maxmemory_policy", srv.sessions.Config.MaxMemoryPolicy.Get())
	l.Gauge(metrics.Metric{Field: "max_keys", Name: "celld_max_keys", JSON: "keys.most", Help: "Most keys, by max-keys.", Value: srv.sessions.Config.MaxKeys.Get()})
	l.Field("mem_allocator", "go")
}

func (srv *Server) declareFiles(l *metrics.List) {
	l.Gauge(metrics.Metric{Field: "loading", Name: "celld_loading", Help: "1 while files are read.", Value: srv.sessions.Gate.Has(gate.Loading)})
	l.Gauge(metrics.Metric{Name: "celld_script_busy", Help: "1 while a script has run for more than lua-time-limit, so that nobody else is answered.", Value: srv.sessions.Gate.Has(gate.Busy)})
	l.InfoOnly = !srv.sessions.Port.Here()
	metrics.Files(l, srv.sessions.Persist.Status(), srv.sessions.Persist.Loading(), srv.wall)
}

func declareReplication(l *metrics.List) {
	l.Field("role", "master")
	l.Field("connected_slaves", 0)
	l.Field("master_repl_offset", 0)
}

func (srv *Server) declareCommands(l *metrics.List) {
	srv.sessions.Commands.Each(func(row *command.Row) {
		calls, ns, times := stats.Of(row).Read()
		if times != nil {
			l.Histogram(metrics.Metric{Name: "celld_command_duration_seconds", Help: "How long commands took; those of a pipeline take the mean of their batch.",
				Labels: []string{"command", row.FullName()}, Value: times.Histogram(ns)})
		}
		rejected := stats.Of(row).Rejected.Load()
		if calls == 0 && rejected == 0 {
			return
		}
		each := float64(ns) / 1e3 / float64(max(calls, 1))
		l.Field("cmdstat_"+row.FullName(), fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			calls, ns/1e3, each, rejected, stats.Of(row).Failed.Load()))
	})
}

// declareLatency declares the durations of Redis's default percentiles. A fast command counts with the mean of its batch, which is
// its own duration where it was alone in the batch.
func (srv *Server) declareLatency(l *metrics.List) {
	srv.sessions.Commands.Each(func(row *command.Row) {
		_, _, r := stats.Of(row).Read()
		if r == nil {
			return
		}
		var fields []string
		for _, p := range []float64{50, 99, 99.9} {
			fields = append(fields, fmt.Sprintf("p%v=%.3f", p, float64(r.Percentile(p))/1e3))
		}
		l.Field("latency_percentiles_usec_"+row.FullName(), strings.Join(fields, ","))
	})
}

func (srv *Server) declareKeyspace(l *metrics.List) {
	keys := srv.sessions.Store.Len(l.NowNS)
	if srv.sessions.Port.Here() {
		l.Gauge(metrics.Metric{Name: "celld_keys", JSON: "keys.held", Help: "Keys in the table.", Value: keys})
	}
	if keys > 0 {
		st := l.Keys(srv.sessions.Store)
		l.Field("db0", fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", keys, min(st.WithExpiry, int64(keys)), st.AvgTTLNS/1e6))
	}
}

// declareStats declares INFO's section Stats.
func (srv *Server) declareStats(l *metrics.List) {
	srv.sessions.Stats.DeclareTraffic(l, l.Keys(srv.sessions.Store))
	srv.sessions.Decisions.Declare(l)
	srv.sessions.Stats.DeclareTroubles(l)
}

// declareEngine is about the engine that keeps the limits. There are no metrics where they are kept in memory.
func (srv *Server) declareEngine(l *metrics.List) {
	if !srv.sessions.Port.Here() {
		metrics.Engine(l, srv.sessions.Port.Facts())
	}
}

// declareTLS says when the certificate ends.
func (srv *Server) declareTLS(l *metrics.List) {
	m := metrics.Metric{Field: "tls_cert_not_after", JSON: "certificate_ends_unix_ms",
		Help: "When the first of the server's certificates ends.", Value: time.Time{}}
	if k := srv.sessions.Config.TLS.Keeper; k != nil {
		m.Name, m.Value = "celld_tls_cert_not_after_timestamp_seconds", k.NotAfter()
	}
	l.Gauge(m)
}

// multiplexing names the transport in INFO.
func multiplexing() string {
	if transport.HasLoops {
		return "epoll"
	}
	return "go"
}
