// Package cgroup keeps the process within --maxmemory. If that is not given, it derives it from the container's limit.
//
//	var wings = []resp.Wing{cgroup.Wing(), …}
package cgroup

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"celld/resp"
	"celld/resp/config"
)

// Whatever keys come, the process takes no more than processBound. The heap stays well below that:
//
//   - Keys take up to a quarter more than maxmemory: an eighth for idle places in slabs, and an eighth for gaps on the heap.
//   - heapBase is for 20 MB more of both, and for all else: names of removed keys for the append-only file (16 MB), its buffers, the
//     event loops, and garbage. Garbage needs little room: nearly all of the heap has no pointers, so collections are cheap.
//   - The rest of the bound is for the binary, and for what the heap exceeds its limit by before the collector catches up.
//
// Unfinished commands and unread replies of clients come on top. Their own limits bound them.
const (
	heapBase    = 48 << 20
	processBase = 64 << 20
)

func processBound(maxMemory int64) int64 { return maxMemory + maxMemory/2 + processBase }

// heapLimit returns the memory limit of the Go runtime, in bytes. If maxMemory is 0, only the container limits it. Where both are
// 0, nothing does.
func heapLimit(maxMemory, clients, container int64) int64 {
	limit := int64(math.MaxInt64)
	if maxMemory > 0 && maxMemory < math.MaxInt64/2 {
		limit = maxMemory + maxMemory/4 + clients + clients/4 + heapBase
	}
	if container > 0 { // even if that is too small for maxMemory: better slow than killed
		limit = min(limit, container-container/10)
	}
	return limit
}

// defaultMaxMemory is half of the container's limit. Below 256 MB it is less, so that processBound fits.
func defaultMaxMemory(container int64) int64 {
	fits := (container - processBase) / 3 * 2
	return max(min(container/2, fits), container/8, 1<<20) &^ (1<<20 - 1)
}

// Wing keeps the process within its memory.
func Wing() resp.Wing {
	container := int64(0)
	return resp.Wing{
		Part: config.Part{
			Rows: func(c *config.Config) []config.Setting {
				c.Setting("maxmemory").Default = "half the container's limit, else " + c.MaxMemoryText()
				return nil
			},
			Load: func(c *config.Config, given func(string) bool) error {
				if container = OfContainer(os.DirFS("/")); !given("maxmemory") {
					fit(c, container)
				}
				return nil
			},
		},
		Open: func(o *resp.Options) error {
			limit(o.Config, container, o.Log)
			return nil
		},
	}
}

// fit derives maxmemory from the container's limit in bytes, if there is one.
func fit(cfg *config.Config, container int64) {
	if container > 0 {
		cfg.MaxMemory.Put(defaultMaxMemory(container))
		cfg.MaxMemoryFrom = "cgroup"
	}
}

// limit limits the Go runtime's memory by maxmemory and the container's limit (0: none).
func limit(cfg *config.Config, container int64, log *slog.Logger) {
	if n := cfg.MaxMemory.Get(); container > 0 && (n == 0 || n > container || processBound(n) > container) {
		log.Warn("the process may need more memory than the container has", "maxmemory", cfg.MaxMemoryText(), "maxmemory_from",
			cfg.MaxMemoryFrom, "container_bytes", container)
	}
	if os.Getenv("GOMEMLIMIT") == "" { // whoever sets it knows better
		cfg.OnMemory = func(keys, clients int64) { debug.SetMemoryLimit(heapLimit(keys, clients, container)) }
		cfg.OnMemory(cfg.MaxMemory.Get(), 0)
	}
}
