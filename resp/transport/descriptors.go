package transport

import (
	"math"
	"syscall"
)

// spareDescriptors are file descriptors that connections may not take: listeners, files, logs, and two for each event loop.
// They are 32 up to 8 loops, as in Redis.
func spareDescriptors(loops int64) int64 { return max(32, 16+2*loops) }

// MostConnections is how many of the wanted connections the limit on open files allows, and that limit. Go has raised the soft limit
// to the hard one at the start; the hard one may have been raised since (prlimit).
func MostConnections(wanted, loops int64) (most int64, openFiles uint64) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return wanted, math.MaxUint64
	}
	spare := spareDescriptors(loops)
	need := uint64(wanted + spare)
	if higher := (syscall.Rlimit{Cur: limit.Max, Max: limit.Max}); need > limit.Cur && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher) == nil {
		limit = higher
	}
	if need <= limit.Cur {
		return wanted, limit.Cur
	}
	return max(int64(limit.Cur)-spare, 1), limit.Cur
}
