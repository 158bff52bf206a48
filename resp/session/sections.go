package session

import (
	"fmt"
	"strings"
	"time"

	"celld/persistence/load"
	"celld/resp/command"
	"celld/resp/gate"
	"celld/resp/metrics"
	"celld/resp/stats"
)

// Sections are those of INFO about commands, clients, keys and files, in INFO's order.
func (srv *Service) Sections() []metrics.Section {
	return []metrics.Section{
		{Name: "Clients", ByDefault: true, Read: srv.declareClients},
		{Name: "Memory", ByDefault: true, Read: srv.declareMemory},
		{Name: "Persistence", ByDefault: true, Read: srv.declareFiles},
		{Name: "Stats", ByDefault: true, Counts: true, Read: srv.declareStats},
		{Name: "Replication", ByDefault: true, Read: declareReplication},
		{Name: "CPU", ByDefault: true, Read: metrics.CPU},
		{Name: "Modules", ByDefault: true, Read: func(l *metrics.List) { l.Field("module", command.ModuleLine) }},
		{Name: "Commandstats", Read: srv.declareCommands},
		{Name: "Errorstats", ByDefault: true, Read: srv.Stats.Errors.Declare},
		{Name: "Latencystats", Read: srv.declareLatency},
		{Name: "Cluster", ByDefault: true, Read: func(l *metrics.List) { l.Field("cluster_enabled", 0) }},
		{Name: "Keyspace", ByDefault: true, Read: srv.declareKeyspace},
		{Name: "Store", ByDefault: true, Read: srv.declareEngine},
	}
}

// Wall is an instant of limit time by the wall clock.
func (srv *Service) Wall(nowNS int64) time.Time { return time.Unix(0, srv.Store.WallNS(nowNS)) }

func (srv *Service) declareClients(l *metrics.List) {
	l.Gauge(metrics.Metric{Field: "connected_clients", Name: "celld_connections", JSON: "connections.open", Help: "Connections of clients.",
		Value: srv.Clients.Count()})
	l.Field("cluster_connections", 0)
	l.Gauge(metrics.Metric{Field: "maxclients", Name: "celld_maxclients", JSON: "connections.most", Help: "The setting maxclients.",
		Value: srv.Config.MaxClients.Get()})
	calls, keys := srv.Port.Waiting()
	l.Gauge(metrics.Metric{Field: "blocked_clients", Name: "celld_waiting_calls", JSON: "waiting.calls",
		Help: "Calls that wait for their turn.", Value: calls})
	l.Gauge(metrics.Metric{Field: "waiting_keys", Name: "celld_waiting_keys", JSON: "waiting.keys",
		Help: "Keys that calls wait for.", Value: keys})
	l.Gauge(metrics.Metric{Name: "celld_max_waiters", JSON: "waiting.most", Help: "The setting max-waiters.",
		Value: srv.Config.MaxWaiters.Get()})
	l.Field("tracking_clients", srv.Clients.Tracking())
	l.Field("monitor_clients", len(srv.Clients.Monitors()))
	l.Field("watching_clients", srv.Clients.Watching())
}

func (srv *Service) declareMemory(l *metrics.List) {
	srv.Heap.Declare(l)
	keys := l.Keys(srv.Store)
	l.InfoOnly = !srv.Port.InProcess()
	l.Gauge(metrics.Metric{Field: "used_memory_dataset", Name: "celld_keys_bytes", JSON: "keys.bytes",
		Help: "Estimated memory of keys, as maxmemory counts it.", Value: keys.Bytes})
	scripts, scriptBytes := 0, 0
	if srv.scripts != nil {
		scripts, scriptBytes = srv.scripts.Kept()
	}
	l.Field("number_of_cached_scripts", scripts)
	l.Field("used_memory_scripts", scriptBytes)
	l.Gauge(metrics.Metric{Field: "probation_keys", Name: "celld_keys_probation", Help: "Keys seen once.", Value: keys.Probation})
	l.Gauge(metrics.Metric{Field: "protected_keys", Name: "celld_keys_protected", Help: "Keys seen again.",
		Value: keys.Protected})
	l.InfoOnly = false
	most := srv.Config.MaxMemory.Get()
	l.Gauge(metrics.Metric{Field: "maxmemory", Name: "celld_maxmemory_bytes", JSON: "keys.most_bytes",
		Help: "The setting maxmemory; 0: no bound.", Value: most})
	l.Field("maxmemory_human", metrics.HumanBytes(most))
	l.Field("maxmemory_policy", srv.Config.MaxMemoryPolicy.Get())
	l.Gauge(metrics.Metric{Field: "max_keys", Name: "celld_max_keys", JSON: "keys.most", Help: "The setting max-keys.",
		Value: srv.Config.MaxKeys.Get()})
	l.Field("mem_allocator", "go")
}

func (srv *Service) declareFiles(l *metrics.List) {
	loading := srv.Gate.Has(gate.Loading)
	l.Gauge(metrics.Metric{Field: "loading", Name: "celld_loading", Help: "1 while celld reads its files.", Value: loading})
	l.Gauge(metrics.Metric{Name: "celld_script_busy",
		Help: "1 while a script runs longer than lua-time-limit.", Value: srv.Gate.Has(gate.Busy)})
	l.InfoOnly = !srv.Port.InProcess()
	var progress *load.Progress
	if loading {
		now := srv.Persist.Loading()
		progress = &now
	}
	metrics.Files(l, srv.Persist.Status(), progress, srv.Wall)
}

func declareReplication(l *metrics.List) {
	l.Field("role", "master")
	l.Field("connected_slaves", 0)
	l.Field("master_repl_offset", 0)
}

func (srv *Service) declareCommands(l *metrics.List) {
	srv.Commands.Each(func(row *command.Row) {
		calls, ns := stats.Of(row).Total()
		if !l.ForInfo { // to add up the times of all commands took INFO more than a millisecond
			if _, timedNS, times := stats.Of(row).Read(); times != nil {
				l.Histogram(metrics.Metric{Name: "celld_command_duration_seconds",
					Help:   "How long commands took; in a pipeline, the mean of the batch.",
					Labels: []string{"command", row.FullName()}, Value: times.Histogram(timedNS)})
			}
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
func (srv *Service) declareLatency(l *metrics.List) {
	r := &stats.TimesRead{} // one for all: 180 of 24 KB are 4 MB for the collector
	srv.Commands.Each(func(row *command.Row) {
		if r.Calls > 0 {
			*r = stats.TimesRead{}
		}
		if stats.Of(row).AddTo(r); r.Calls == 0 {
			return
		}
		var fields []string
		for _, p := range []float64{50, 99, 99.9} {
			fields = append(fields, fmt.Sprintf("p%v=%.3f", p, float64(r.Percentile(p))/1e3))
		}
		l.Field("latency_percentiles_usec_"+row.FullName(), strings.Join(fields, ","))
	})
}

func (srv *Service) declareKeyspace(l *metrics.List) {
	keys := srv.Store.Len(l.NowNS)
	if srv.Port.InProcess() {
		l.Gauge(metrics.Metric{Name: "celld_keys", JSON: "keys.held", Help: "Keys in the table.", Value: keys})
	}
	if keys > 0 {
		st := l.Keys(srv.Store)
		l.Field("db0", fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", keys, min(st.WithExpiry, int64(keys)), st.AvgTTLNS/1e6))
	}
}

// declareStats declares INFO's section Stats.
func (srv *Service) declareStats(l *metrics.List) {
	srv.Stats.DeclareTraffic(l, l.Keys(srv.Store))
	srv.Decisions.Declare(l)
	srv.Stats.DeclareTroubles(l)
}

// declareEngine is about the engine that keeps the limits. There are no metrics where they are kept in memory.
func (srv *Service) declareEngine(l *metrics.List) {
	if !srv.Port.InProcess() {
		metrics.Engine(l, srv.Port.Facts())
	}
}

// ResetCommands begins to count commands and errors anew, as CONFIG RESETSTAT does.
func (srv *Service) ResetCommands() {
	srv.Stats.Errors.Reset()
	srv.Commands.Each(func(row *command.Row) { stats.Of(row).Reset() })
}
