package resp

import (
	"celld/resp/command"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
)

// infoSection is one section of INFO. A field has Redis's name if Redis has such a field.
type infoSection struct {
	name      string
	byDefault bool // part of INFO without arguments
	write     func(*infoWriter, *Session)
}

var infoSections = []infoSection{
	{"Server", true, infoServer},
	{"Clients", true, infoClients},
	{"Memory", true, infoMemory},
	{"Persistence", true, infoPersistence},
	{"Stats", true, infoStats},
	{"Replication", true, infoReplication},
	{"CPU", true, infoCPU},
	{"Modules", true, infoModules},
	{"Commandstats", false, infoCommandStats},
	{"Errorstats", true, infoErrorStats},
	{"Latencystats", false, infoLatencyStats},
	{"Cluster", true, infoCluster},
	{"Keyspace", true, infoKeyspace},
	{"Store", true, infoStore},
	{"TLS", true, infoTLS},
}

// cmdInfo is INFO [section ...]. The words default, all and everything each name several sections.
func cmdInfo(s *Session, args [][]byte) {
	wanted := map[string]bool{}
	for _, arg := range args[1:] {
		wanted[strings.ToLower(string(arg))] = true
	}
	all := wanted["all"] || wanted["everything"]
	byDefault := len(wanted) == 0 || wanted["default"]
	var w infoWriter
	for _, section := range infoSections {
		if all || byDefault && section.byDefault || wanted[strings.ToLower(section.name)] {
			if w.b.Len() > 0 {
				w.b.WriteString("\r\n")
			}
			fmt.Fprintf(&w.b, "# %s\r\n", section.name)
			section.write(&w, s)
		}
	}
	s.replyText(w.b.String())
}

type infoWriter struct{ b strings.Builder }

func (w *infoWriter) field(name string, value any) { fmt.Fprintf(&w.b, "%s:%v\r\n", name, value) }

func infoServer(w *infoWriter, s *Session) {
	srv := s.srv
	uptime := (s.nowNS - srv.bornNS) / 1e9
	w.field("redis_version", RedisVersion)
	w.field("celld_version", srv.version)
	w.field("redis_mode", "standalone")
	w.field("os", runtime.GOOS+" "+runtime.GOARCH)
	w.field("arch_bits", 32<<(^uint(0)>>63))
	w.field("go_version", runtime.Version())
	w.field("multiplexing_api", multiplexing())
	w.field("process_id", os.Getpid())
	w.field("run_id", srv.runID)
	w.field("tcp_port", srv.tcpPort())
	w.field("server_time_usec", s.wallNS()/1e3)
	w.field("uptime_in_seconds", uptime)
	w.field("uptime_in_days", uptime/86400)
	executable, _ := os.Executable() // empty if the system does not say
	w.field("executable", executable)
	w.field("config_file", "")
	infoListeners(w, srv)
	w.field("io_threads_active", srv.cfg.ioThreads.Get())
	if why := srv.NotReady(); why != "" {
		w.field("not_ready_because", why)
	}
}

func infoClients(w *infoWriter, s *Session) {
	watching, tracking := 0, 0
	for _, other := range s.srv.allSessions() {
		if other.client.watching.Load() > 0 {
			watching++
		}
		if other.client.trackingMode() != 0 {
			tracking++
		}
	}
	w.field("connected_clients", s.srv.clientCount())
	w.field("cluster_connections", 0)
	w.field("maxclients", s.srv.cfg.maxClients.Get())
	waiting, waitingKeys := s.srv.leases.Waiting()
	w.field("blocked_clients", waiting)
	w.field("waiting_keys", waitingKeys)
	w.field("tracking_clients", tracking)
	w.field("monitor_clients", s.srv.monitors.len())
	w.field("watching_clients", watching)
}

func infoMemory(w *infoWriter, s *Session) {
	used, held := s.srv.readMemory()
	peak := s.srv.stats.peakBytes.Load()
	w.field("used_memory", used)
	w.field("used_memory_human", humanBytes(used))
	w.field("used_memory_rss", held)
	w.field("used_memory_rss_human", humanBytes(held))
	w.field("used_memory_peak", peak)
	w.field("used_memory_peak_human", humanBytes(peak))
	keys := s.srv.store.Stats(s.nowNS)
	w.field("used_memory_dataset", keys.Bytes)
	scripts, scriptBytes := 0, 0
	if s.srv.scripts != nil {
		scripts, scriptBytes = s.srv.scripts.Kept()
	}
	w.field("number_of_cached_scripts", scripts)
	w.field("used_memory_scripts", scriptBytes)
	w.field("probation_keys", keys.Probation)
	w.field("protected_keys", keys.Protected)
	w.field("maxmemory", s.srv.cfg.maxMemory.Get())
	w.field("maxmemory_human", humanBytes(s.srv.cfg.maxMemory.Get()))
	w.field("maxmemory_policy", s.srv.cfg.maxMemoryPolicy.Get())
	w.field("max_keys", s.srv.cfg.maxKeys.Get())
	w.field("mem_allocator", "go")
}

// readMemory returns the bytes of all objects on the heap (used), and the bytes that the Go runtime holds in all (held). It keeps
// the peak of used.
func (srv *Server) readMemory() (used, held int64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	used = int64(samples[0].Value.Uint64())
	held = int64(samples[1].Value.Uint64() - samples[2].Value.Uint64())
	for {
		peak := srv.stats.peakBytes.Load()
		if used <= peak || srv.stats.peakBytes.CompareAndSwap(peak, used) {
			return used, held
		}
	}
}

func kilobytes(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1024) }

func infoReplication(w *infoWriter, _ *Session) {
	w.field("role", "master")
	w.field("connected_slaves", 0)
	w.field("master_repl_offset", 0)
}

func infoModules(w *infoWriter, _ *Session) {
	fmt.Fprintf(&w.b, "module:name=redis-cell,ver=%d,api=1,filters=0,usedby=[],using=[],options=[]\r\n", moduleVersion)
}

func infoCommandStats(w *infoWriter, s *Session) {
	s.srv.commands.Each(func(row *command.Row) {
		calls, ns, _ := statsOf(row).read()
		rejected := statsOf(row).rejected.Load()
		if calls == 0 && rejected == 0 {
			return
		}
		us := ns / 1e3
		each := 0.0
		if calls > 0 {
			each = float64(ns) / 1e3 / float64(calls)
		}
		fmt.Fprintf(&w.b, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d\r\n",
			row.FullName(), calls, us, each, rejected, statsOf(row).failed.Load())
	})
}

func infoKeyspace(w *infoWriter, s *Session) {
	keys := s.srv.store.Len(s.nowNS)
	if keys == 0 {
		return
	}
	st := s.srv.store.Stats(s.nowNS)
	fmt.Fprintf(&w.b, "db0:keys=%d,expires=%d,avg_ttl=%d\r\n", keys, min(st.WithExpiry, int64(keys)), st.AvgTTLNS/1e6)
}

// infoStore is about the engine that keeps the limits. It has no fields where they are kept in memory.
func infoStore(w *infoWriter, s *Session) {
	if s.srv.engine == nil {
		return
	}
	for _, fact := range s.srv.engine.Facts() {
		w.field(fact.Name, fact.Value)
	}
}

// humanBytes writes a size as Redis does: 512B, 1.50K, 2.00M.
func humanBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < 4 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.2f%c", value, " KMGT"[unit])
}

func (srv *Server) tcpPort() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, a := range srv.addrs {
		if tcp, ok := a.(*net.TCPAddr); ok {
			return tcp.Port
		}
	}
	return 0
}

// newRunID returns 40 random hex digits. Each start has its own.
func newRunID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
