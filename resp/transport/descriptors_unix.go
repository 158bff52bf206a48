//go:build unix

package transport

import (
	"math"
	"syscall"
)

// spareDescriptors returns how many file descriptors connections may not take: they are for listeners, files, logs, and two for
// each event loop. Up to 8 loops they are 32, as in Redis.
func spareDescriptors(loops int64) int64 { return max(32, 16+2*loops) }

// MostConnections returns how many of the wanted connections the limit on open files allows, at least 1, and that limit. Go
// raises the soft limit to the hard one at the start. The hard one may have been raised since (prlimit), so MostConnections
// raises the soft limit again if it needs to. loops is the number of event loops.
func MostConnections(wanted, loops int64) (most int64, openFiles uint64) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return wanted, math.MaxUint64
	}
	spare := spareDescriptors(loops)
	need := uint64(wanted + spare)
	if higher := (syscall.Rlimit{Cur: limit.Max, Max: limit.Max}); need > limit.Cur &&
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher) == nil {
		limit = higher
	}
	if need <= limit.Cur {
		return wanted, limit.Cur
	}
	return max(int64(limit.Cur)-spare, 1), limit.Cur
}
