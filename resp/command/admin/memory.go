package admin

import (
	"runtime/debug"
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/store/memory"
	"celld/store/memory/table"
)

// memory is MEMORY's subcommands.
func (f family) memory() []*command.Row {
	return []*command.Row{
		{Name: "purge", Arity: 2, Summary: "Gives unused memory back to the system, in the background.", Since: "4.0.0", Group: "server", Run: new(purge).run},
		{Name: "stats", Arity: 2, Summary: "Returns what memory is used for.", Since: "4.0.0", Group: "server", Run: f.memoryStats},
		{Name: "usage", Arity: -3, Flags: spec.Readonly, Keys: spec.SubKey, Access: spec.Looks, Usage: "key [SAMPLES count]",
			Summary: "Returns the bytes that a key and its limits take, as maxmemory counts them.", Since: "4.0.0", Group: "server",
			Cost: "O(N) where N is the number of limits", Run: usage},
	}
}

// usageOptions are those of MEMORY USAGE. SAMPLES is checked, but not needed.
var usageOptions = argument.Options{Valued: []string{"SAMPLES"}, Refusal: argument.ErrSyntax}

// usage counts all limits of a key.
func usage(c *command.Call) {
	text := usageOptions.Read(c.Args[3:], func(_ string, value []byte) (text string) {
		switch n, ok := argument.ParseInt(value); {
		case !ok:
			return argument.ErrNotInteger
		case n < 0:
			return argument.ErrSyntax
		}
		return ""
	})
	if text != "" {
		c.Error("%s", text)
	} else if n, ok := c.Keys().KeyBytes(c.Args[2], c.NowNS); ok {
		c.Int(n)
	} else {
		c.Null()
	}
}

// purge is MEMORY PURGE, of which one runs at a time.
type purge struct{ running atomic.Bool }

// run does not wait for the purge, because all connections of its event loop would wait too. With 3,200,000 keys and a purge every
// 20 ms, other replies took no longer than without.
func (p *purge) run(c *command.Call) {
	if p.running.CompareAndSwap(false, true) {
		go func() {
			defer p.running.Store(false)
			debug.FreeOSMemory()
		}()
	}
	c.OK()
}

// memoryUse is what memory is used for, in bytes.
type memoryUse struct {
	used, held, peak int64 // by objects; by the process; the most that used has been
	clients          int64 // sessions and their buffers
	keys             int64 // how many the table holds
	memory.Stats
}

func (srv Server) memoryUse(nowNS int64) (m memoryUse) {
	m.used, m.held, m.peak = srv.Heap.Read()
	m.keys = int64(srv.Table.Len(nowNS))
	m.Stats = srv.Table.Stats(nowNS)
	m.clients = srv.ClientBytes()
	return m
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

// memoryStats answers with all names of Redis 7.0, because typed clients read them by name. A name that means nothing in celld gets 0.
func (f family) memoryStats(c *command.Call) {
	m := f.server().memoryUse(c.NowNS)
	double := func(name string, f float64) { c.String(name); c.Double(f) }
	if m.keys > 0 {
		c.Map(28)
	} else {
		c.Map(27)
	}
	c.Field("peak.allocated", m.peak)
	c.Field("total.allocated", m.used)
	for _, name := range []string{"startup.allocated", "replication.backlog", "clients.slaves"} {
		c.Field(name, 0)
	}
	c.Field("clients.normal", m.clients)
	for _, name := range []string{"cluster.links", "aof.buffer", "lua.caches", "functions.caches"} {
		c.Field(name, 0)
	}
	if m.keys > 0 { // Redis leaves out a database without keys
		c.String("db.0")
		c.Map(3)
		c.Field("overhead.hashtable.main", m.keys*table.OverheadBytes)
		c.Field("overhead.hashtable.expires", 0)
		c.Field("overhead.hashtable.slot-to-keys", 0)
	}
	c.Field("overhead.total", max(0, m.used-m.Bytes))
	c.Field("keys.count", m.keys)
	c.Field("keys.bytes-per-key", m.Bytes/max(m.keys, 1))
	c.Field("dataset.bytes", m.Bytes)
	double("dataset.percentage", 100*ratio(m.Bytes, m.used))
	double("peak.percentage", 100*ratio(m.used, m.peak))
	c.Field("allocator.allocated", m.used)
	c.Field("allocator.active", m.held)
	c.Field("allocator.resident", m.held)
	double("allocator-fragmentation.ratio", ratio(m.held, m.used))
	c.Field("allocator-fragmentation.bytes", m.held-m.used)
	double("allocator-rss.ratio", 1)
	c.Field("allocator-rss.bytes", 0)
	double("rss-overhead.ratio", 1)
	c.Field("rss-overhead.bytes", 0)
	double("fragmentation", ratio(m.held, m.used))
	c.Field("fragmentation.bytes", m.held-m.used)
}
