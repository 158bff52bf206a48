// Package memory keeps the process within what --maxmemory says, and takes that from the container where nobody does.
//
//	container := memory.OfContainer(os.DirFS("/"))
//	from := memory.Limit(cfg, false, container, log) // "cgroup", if there is a container's limit
package memory

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"celld/resp"
)

// The process takes no more than processBound, whatever keys come. The heap is to stay well below that:
//
//   - Keys take up to a quarter more than maxmemory's estimate. Keys of 33 KB are the worst: the allocator rounds them up to 40.
//   - heapBase is for what is no key: names of removed keys for the append-only file (16 MB), its buffers, the event loops, and
//     garbage. There need not be much room for garbage: nearly all of the heap has no pointers, so collections are cheap.
//   - The rest of the bound is the binary, and what the heap exceeds its limit by before the collector has caught up.
//
// What clients have sent and not finished, or not read, is beside that, and the heap may be as much larger. Their own limits bound it.
const (
	heapBase    = 48 << 20
	processBase = 64 << 20
)

func processBound(maxMemory int64) int64 { return maxMemory + maxMemory/2 + processBase }

// heapLimit is what the Go runtime is to stay below. A maxmemory of 0 leaves that to the container, or to nobody.
func heapLimit(maxMemory, clients, container int64) int64 {
	limit := int64(math.MaxInt64)
	if maxMemory > 0 && maxMemory < math.MaxInt64/2 {
		limit = maxMemory + maxMemory/4 + clients + clients/4 + heapBase
	}
	if container > 0 { // which may be too small for a maxmemory that was given: better slow than killed
		limit = min(limit, container-container/10)
	}
	return limit
}

// defaultMaxMemory is half of what the container may take; below 256 MB it is less, so that processBound fits.
func defaultMaxMemory(container int64) int64 {
	fits := (container - processBase) / 3 * 2
	return max(min(container/2, fits), container/8, 1<<20) &^ (1<<20 - 1)
}

// Limit sets maxmemory unless it was given, and has the collector keep to it. It returns where maxmemory is from.
func Limit(cfg *resp.Config, given bool, container int64, log *slog.Logger) (from string) {
	switch {
	case given:
		from = "setting"
	case container > 0:
		from = "cgroup"
		cfg.SetMaxMemory(defaultMaxMemory(container))
	default:
		from = "default"
	}
	if n := cfg.MaxMemory(); container > 0 && (n == 0 || n > container || processBound(n) > container) {
		log.Warn("the process may need more memory than the container has", "maxmemory", cfg.MaxMemoryText(), "maxmemory_from", from, "container_bytes", container)
	}
	if os.Getenv("GOMEMLIMIT") == "" { // whoever sets it knows better
		cfg.OnMemory(func(n, clients int64) { debug.SetMemoryLimit(heapLimit(n, clients, container)) })
	}
	return from
}
