package resp

import (
	"context"
	"time"
)

// The cron does what no command asks for: expired keys leave, idle connections are closed, rates are sampled.
const (
	cronEvery = 100 * time.Millisecond
	sweepTime = 25 * time.Millisecond // of every 100: a quarter of one CPU at the most, as in Redis
)

func (srv *Server) cron(ctx context.Context, carrier carrier) {
	ticker := time.NewTicker(cronEvery)
	defer ticker.Stop()
	lastCommands, ticks := int64(0), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		srv.followWall()
		if nowNS := srv.clock(); srv.store.SweepDue(nowNS) && srv.sweeping.CompareAndSwap(false, true) {
			carrier.background(func() (more bool) {
				more = srv.sweep(nowNS + int64(sweepTime))
				srv.sweeping.Store(more)
				return more
			})
		}
		srv.persist.Tick()
		if ticks++; ticks%10 == 0 {
			commands := srv.stats.commands.Load()
			srv.stats.commandsPerSecond.Store(max(0, commands-lastCommands))
			lastCommands = commands
			srv.readMemory()
			srv.closeIdle()
		}
	}
}

// sweep removes a few expired keys, and reports whether there are more and time is left.
func (srv *Server) sweep(untilNS int64) (more bool) {
	nowNS := srv.clock()
	return srv.store.Sweep(nowNS) && nowNS < untilNS
}

func (srv *Server) closeIdle() {
	timeoutNS := srv.cfg.timeout.Get() * 1e9
	if timeoutNS == 0 {
		return
	}
	nowNS := srv.clock()
	for _, s := range srv.allSessions() {
		if nowNS-s.client.lastNS.Load() > timeoutNS && !s.client.monitor.Load() {
			srv.stats.idleCloses.Add(1)
			s.kill()
		}
	}
}

// At shutdown, what has arrived counts as answered when nothing was heard for quietNS. Peers that go on sending are
// answered for busyNS more.
const (
	quietNS = 50_000_000
	busyNS  = 1_000_000_000
)

// drain waits, once no new connections come, until what has arrived is answered and the answers are read, at most for
// the shutdown time-out.
func (srv *Server) drain() {
	startNS, limitNS := srv.clock(), srv.cfg.shutdownTimeout.Get()*1e9
	for {
		nowNS, lastNS, unsent := srv.clock(), startNS, false
		for _, s := range srv.allSessions() {
			lastNS = max(lastNS, s.client.lastNS.Load())
			if s.client.unsent.Load() > 0 {
				unsent = true
				s.tr.Wake() // to look again
			}
		}
		answered := nowNS-lastNS > quietNS || nowNS-startNS > busyNS
		if answered && !unsent || nowNS-startNS > limitNS {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
