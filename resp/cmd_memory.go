package resp

import (
	"fmt"
	"runtime/debug"
	"strings"

	"celld/resp/command"
	"celld/resp/metrics"
	"celld/store"
	"celld/store/memory/table"
)

func memoryRows(srv *Server) []*command.Row {
	return []*command.Row{
		{Name: "doctor", Arity: 2, Summary: "Says what is wrong with the use of memory.", Since: "4.0.0", Group: "server", Run: onSession(cmdMemoryDoctor)},
		{Name: "malloc-stats", Arity: 2, Summary: "Returns the memory statistics of Go's runtime.", Since: "4.0.0", Group: "server", Run: onSession(cmdMemoryMallocStats)},
		{Name: "purge", Arity: 2, Summary: "Gives unused memory back to the system, in the background.", Since: "4.0.0", Group: "server", Run: onSession(srv.cmdMemoryPurge)},
		{Name: "stats", Arity: 2, Summary: "Returns what memory is used for.", Since: "4.0.0", Group: "server", Run: onSession(cmdMemoryStats)},
		{Name: "usage", Arity: -3, Flags: command.Readonly, Keys: command.KeyRange{First: 2, Last: 2, Step: 1}, Access: command.Looks, Usage: "key [SAMPLES count]", Summary: "Returns the bytes that a key and its limits take, as maxmemory counts them.",
			Since: "4.0.0", Group: "server", Cost: "O(N) where N is the number of limits", Run: onSession(cmdMemoryUsage)},
	}
}

// cmdMemoryUsage counts all limits of a key. It checks SAMPLES but does not need it.
func cmdMemoryUsage(s *Session, args [][]byte) {
	for rest := args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 || !strings.EqualFold(string(rest[0]), "samples") {
			s.call.Error(errSyntax)
			return
		}
		n, ok := command.ParseInt(rest[1])
		if !ok {
			s.call.Error(errNotInteger)
			return
		}
		if n < 0 {
			s.call.Error(errSyntax)
			return
		}
	}
	if n, ok := s.store().KeyBytes(args[2], s.nowNS); ok {
		s.call.Int(n)
	} else {
		s.call.Null()
	}
}

// cmdMemoryPurge does not wait for the purge, because all connections of its event loop would wait too. One purge runs at a time.
// With 3,200,000 keys and a purge every 20 ms, other replies took no longer than without.
func (srv *Server) cmdMemoryPurge(s *Session, _ [][]byte) {
	if srv.upkeep.purging.CompareAndSwap(false, true) {
		go func() {
			defer srv.upkeep.purging.Store(false)
			debug.FreeOSMemory()
		}()
	}
	s.call.OK()
}

// cmdMemoryMallocStats uses the names of runtime/metrics.
func cmdMemoryMallocStats(s *Session, _ [][]byte) {
	s.call.Text(metrics.MallocStats())
}

// memoryUse is what memory is used for, in bytes.
type memoryUse struct {
	used, held, peak int64 // by objects; by the process; the most that used has been
	clients          int64 // sessions and their buffers
	keys             int64 // how many the store holds
	store.Stats
}

func (s *Session) memoryUse() (m memoryUse) {
	m.used, m.held, m.peak = s.srv.heap.Read()
	m.keys = int64(s.srv.store.Len(s.nowNS))
	m.Stats = s.srv.store.Stats(s.nowNS)
	for _, other := range s.srv.clients.all() {
		m.clients += other.client.bytes()
	}
	return m
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

// cmdMemoryStats has all names of Redis 7.0, because typed clients read them by name. A name that means nothing in celld has 0.
func cmdMemoryStats(s *Session, _ [][]byte) {
	m := s.memoryUse()
	double := func(name string, f float64) { s.call.String(name); s.call.Double(f) }
	if m.keys > 0 {
		s.call.Map(28)
	} else {
		s.call.Map(27)
	}
	s.call.Field("peak.allocated", m.peak)
	s.call.Field("total.allocated", m.used)
	s.call.Field("startup.allocated", 0)
	s.call.Field("replication.backlog", 0)
	s.call.Field("clients.slaves", 0)
	s.call.Field("clients.normal", m.clients)
	s.call.Field("cluster.links", 0)
	s.call.Field("aof.buffer", 0)
	s.call.Field("lua.caches", 0)
	s.call.Field("functions.caches", 0)
	if m.keys > 0 { // Redis leaves out a database without keys
		s.call.String("db.0")
		s.call.Map(3)
		s.call.Field("overhead.hashtable.main", m.keys*table.OverheadBytes)
		s.call.Field("overhead.hashtable.expires", 0)
		s.call.Field("overhead.hashtable.slot-to-keys", 0)
	}
	s.call.Field("overhead.total", max(0, m.used-m.Bytes))
	s.call.Field("keys.count", m.keys)
	s.call.Field("keys.bytes-per-key", m.Bytes/max(m.keys, 1))
	s.call.Field("dataset.bytes", m.Bytes)
	double("dataset.percentage", 100*ratio(m.Bytes, m.used))
	double("peak.percentage", 100*ratio(m.used, m.peak))
	s.call.Field("allocator.allocated", m.used)
	s.call.Field("allocator.active", m.held)
	s.call.Field("allocator.resident", m.held)
	double("allocator-fragmentation.ratio", ratio(m.held, m.used))
	s.call.Field("allocator-fragmentation.bytes", m.held-m.used)
	double("allocator-rss.ratio", 1)
	s.call.Field("allocator-rss.bytes", 0)
	double("rss-overhead.ratio", 1)
	s.call.Field("rss-overhead.bytes", 0)
	double("fragmentation", ratio(m.held, m.used))
	s.call.Field("fragmentation.bytes", m.held-m.used)
}

// doctorBytes is the least use of memory that MEMORY DOCTOR mentions.
const doctorBytes = 64 << 20

func cmdMemoryDoctor(s *Session, _ [][]byte) {
	m, cfg := s.memoryUse(), s.srv.cfg
	var text strings.Builder
	find := func(found bool, format string, args ...any) {
		if found {
			fmt.Fprintf(&text, "* "+format+"\n", args...)
		}
	}
	find(m.Evicted > 0, "%d limits were reset to make room for others (evicted_keys). Raise --max-keys (%d) or --maxmemory (%s).", m.Evicted, cfg.MaxKeys.Get(), cfg.MaxMemoryText())
	find(cfg.NoEviction() && m.keys >= cfg.MaxKeys.Get(), "The table is full and new keys are refused. Raise --max-keys (%d), or use --maxmemory-policy allkeys-lru.", cfg.MaxKeys.Get())
	find(cfg.MaxMemory.Get() == 0, "--maxmemory is 0: only --max-keys (%d) bounds the memory, however long keys are.", cfg.MaxKeys.Get())
	find(m.clients > doctorBytes && m.clients > m.Bytes, "Clients' buffers take %s, more than all keys. CLIENT LIST shows whose (tot-mem).", metrics.HumanBytes(m.clients))
	find(m.held-m.used > max(doctorBytes, m.used/2), "The process holds %s of memory, and %s is in use. MEMORY PURGE gives back the rest.", metrics.HumanBytes(m.held), metrics.HumanBytes(m.used))
	if text.Len() == 0 {
		text.WriteString("Nothing is amiss.\n")
	}
	s.call.Text(text.String())
}
