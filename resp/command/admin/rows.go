package admin

import (
	"log/slog"

	"celld/persistence"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/config"
	"celld/resp/metrics"
	"celld/store/memory"
)

// Server is what the family needs of its server. A table that only names the commands asks for none.
type Server struct {
	Config  *config.Config
	Metrics *metrics.Registry
	Heap    Heap
	Table   Table
	Disk    *persistence.Disk // nil: an engine keeps the keys
	Life    Life
	Log     *slog.Logger

	ClientBytes func() int64 // the memory of all clients
}

// Table is the table of keys of the process.
type Table interface {
	Len(nowNS int64) int
	Stats(nowNS int64) memory.Stats
}

// Heap is the memory of the process, in bytes.
type Heap interface {
	// Read returns what objects use, what the process holds, and the most that objects have used.
	Read() (used, held, peak int64)
}

// Life is how a server ends.
type Life interface {
	// AbortShutdown ends the delay of a shutdown, and reports whether there was one.
	AbortShutdown() bool

	// PrepareShutdown takes the snapshot that is due at the end, and reports whether that worked. With save it is due in any case, with
	// nosave in none.
	PrepareShutdown(save, nosave bool) (ok bool)

	// Shutdown stops the server at once, and calls atEnd when all files are whole. It does not wait for that.
	Shutdown(atEnd func())

	// Busy reports whether a script takes too long.
	Busy() bool
}

// family is what the handlers share.
type family struct{ server func() Server }

// Rows are the commands of the family.
func Rows(server func() Server) []*command.Row {
	f := family{server}
	return []*command.Row{
		{Name: "info", Arity: -1, Most: spec.ShortList, Flags: spec.Loading, Usage: "[section ...]", Summary: "Returns information and statistics about the server.", Since: "1.0.0", Group: "server", Run: f.info},
		{Name: "time", Arity: 1, Flags: spec.Loading | spec.Fast, Summary: "Returns the server time.", Since: "2.6.0", Group: "server", Run: serverTime},
		{Name: "memory", Arity: -2, Summary: "A container for memory diagnostics commands.", Since: "4.0.0", Group: "server", Sub: f.memory()},
		{Name: "module", Arity: -2, Summary: "A container for module commands.", Since: "4.0.0", Group: "server", Sub: []*command.Row{
			{Name: "list", Arity: 2, Flags: spec.Admin | spec.NoScript, Summary: "Returns all loaded modules: redis-cell, whose command this server has built in.", Since: "4.0.0", Group: "server", Run: (*command.Call).Modules},
		}},
		{Name: "role", Arity: 1, Flags: spec.Loading | spec.Fast | spec.NoScript, Summary: "Returns the replication role: a master without replicas.", Since: "2.8.12", Group: "server", Run: role},
		{Name: "shutdown", Arity: -1, Flags: spec.AllowBusy | spec.Loading | spec.Admin | spec.NoScript | spec.NoMulti, Usage: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", Summary: "Stops the server.", Since: "1.0.0", Group: "server", Run: command.OnConnection(f.shutdown)},
		{Name: "save", Arity: 1, Flags: spec.Admin | spec.NoScript | spec.NoMulti, Summary: "Takes a snapshot while all clients wait.", Since: "1.0.0", Group: "server", Cost: "O(N) where N is the number of keys", Run: f.onDisk(save)},
		{Name: "bgsave", Arity: -1, Flags: spec.Admin | spec.NoScript, Usage: "[SCHEDULE]", Summary: "Takes a snapshot in the background.", Since: "1.0.0", Group: "server", Run: f.onDisk(backgroundSave)},
		{Name: "bgrewriteaof", Arity: 1, Flags: spec.Admin | spec.NoScript, Summary: "Rewrites the append-only file in the background.", Since: "1.0.0", Group: "server", Run: f.onDisk(rewrite)},
		{Name: "lastsave", Arity: 1, Flags: spec.Loading | spec.Fast, Summary: "Returns the Unix time of the last good snapshot.", Since: "1.0.0", Group: "server", Run: f.onDisk(lastSave)},
	}
}
