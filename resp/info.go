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
			{Read: func(l *metrics.List) { srv.files.Declare(l) }},
			{Read: func(l *metrics.List) { metrics.Process(l, srv.sessions.Wall(srv.instance.bornNS)) }},
		})
	return metrics.New(sections...)
}

// Metrics reads all counters and states. No label has a key. It takes 1 ms with a million keys, as INFO does, and holds up no event loop.
// Others add theirs.
func (srv *Server) Metrics(others ...func(*metrics.List)) []metrics.Metric {
	return srv.metrics.Read(srv.sessions.Clock(), slices.Concat(srv.others, others)...)
}

func (srv *Server) declareServer(l *metrics.List) {
	uptime := time.Duration(l.NowNS - srv.instance.bornNS)
	l.Gauge(metrics.Metric{Name: "celld_build_info", Help: "The version, as labels.",
		Labels: []string{"version", srv.instance.version, "go_version", runtime.Version()}, Value: 1})
	l.Field("redis_version", session.RedisVersion)
	l.Gauge(metrics.Metric{Field: "celld_version", JSON: "version", Value: srv.instance.version})
	l.Field("redis_mode", "standalone")
	l.Field("files_refused", len(srv.files.Troubles()))
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
