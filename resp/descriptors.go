package resp

import (
	"errors"
	"math"
	"syscall"
)

// spareDescriptors are file descriptors that connections may not take: listeners, files, logs, and two for each event loop.
// They are 32 up to 8 loops, as in Redis.
func (srv *Server) spareDescriptors() int64 { return max(32, 16+2*srv.cfg.ioThreads.Get()) }

// mostClients is how many of the wanted connections the limit on open files allows. Go has raised the soft limit to the hard
// one at the start; the hard one may have been raised since (prlimit).
func (srv *Server) mostClients(wanted int64) (most int64, openFiles uint64) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return wanted, math.MaxUint64
	}
	need := uint64(wanted + srv.spareDescriptors())
	if higher := (syscall.Rlimit{Cur: limit.Max, Max: limit.Max}); need > limit.Cur && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher) == nil {
		limit = higher
	}
	if need <= limit.Cur {
		return wanted, limit.Cur
	}
	return max(int64(limit.Cur)-srv.spareDescriptors(), 1), limit.Cur
}

// fitDescriptors lowers maxclients to what the limit on open files allows, as Redis does, and says so.
func (srv *Server) fitDescriptors() {
	wanted := srv.cfg.maxClients.Get()
	if most, openFiles := srv.mostClients(wanted); most < wanted {
		srv.log.Warn("maxclients lowered to what the limit on open files allows", "wanted", wanted, "maxclients", most, "open_files", openFiles)
		srv.cfg.maxClients.n.Store(most)
	}
}

// mayServe says why so many connections cannot be served. Fewer than now always can.
func (srv *Server) mayServe(clients int64) error {
	if most, _ := srv.mostClients(clients); most < clients && clients > srv.cfg.maxClients.Get() {
		return errors.New(formatError(errManyClients, most))
	}
	return nil
}
