package sessiontest

import (
	"log/slog"
	"testing"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/resp/config"
	"celld/resp/script"
	"celld/resp/scripts"
	"celld/store/memory"
)

// Settings are the defaults with others in their place: each a name, and then its value.
func Settings(t testing.TB, others ...string) *config.Config {
	t.Helper()
	cfg := config.New(config.Part{Rows: config.Scripts})
	for i := 0; i < len(others); i += 2 {
		if err := cfg.Setting(others[i]).Value.Set(others[i+1]); err != nil {
			t.Fatalf("%s: %v", others[i], err)
		}
	}
	return cfg
}

// Scripts makes what runs scripts.
func Scripts() scripts.Engine { return script.NewEngine() }

// Keep returns a store in memory, and the disk that keeps it in a file system, with an append-only file that replies wait for. Without a
// file system nothing is kept.
func Keep(o memory.Options, cfg *config.Config, files dir.FileSystem, clock func() int64,
	log *slog.Logger) (*memory.Store, *persistence.Disk) {
	o.Journal = files != nil
	keys, disk := memory.New(o), cfg.Persistence()
	disk.Files, disk.AppendOnly, disk.Fsync, disk.Clock, disk.Log = files, files != nil, persistence.Always, clock, log
	return keys, persistence.New(keys, disk)
}

// Bounds are the bounds of keys by settings, in one shard, so that tests know which key is evicted.
func Bounds(cfg *config.Config, now func() int64) memory.Options {
	return memory.Options{MaxKeys: cfg.MaxKeys.Get(), MaxBytes: cfg.MaxMemory.Get(), NoEviction: cfg.NoEviction(), Shards: 1, Now: now}
}
