package resp

import (
	"context"
	"runtime/debug"
	"time"

	"celld/resp/gate"
	"celld/resp/transport"
)

// The cron does the regular work: it removes expired keys, ends temporary policies, closes idle connections and samples rates.
const (
	cronEvery = 100 * time.Millisecond
	sweepTime = 25 * time.Millisecond // of every 100 ms: at most a quarter of one CPU, as in Redis
)

func (srv *Server) cron(ctx context.Context, t *transport.Transport) {
	ticker := time.NewTicker(cronEvery)
	defer ticker.Stop()
	var last counted
	ticks := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			ticks++
			srv.tick(t, ticks, &last)
		}
	}
}

// endPolicies ends temporary policies that are over. While a script is busy, they stay in force.
func (srv *Server) endPolicies() {
	if nowNS := srv.sessions.Clock(); srv.sessions.Store.PoliciesDue(nowNS) {
		srv.sessions.Between(func() { srv.sessions.Port.EndPolicies(nowNS) })
	}
}

// counted is the counts at the last full second.
type counted struct{ commands, input, output int64 }

// tick runs every 100 ms. Every tenth tick also does the work of a second.
func (srv *Server) tick(t *transport.Transport, ticks int, last *counted) {
	defer srv.sessions.Survive("cron")
	srv.followWall()
	srv.endPolicies()
	if nowNS := srv.sessions.Clock(); srv.sessions.Store.SweepDue(nowNS) && srv.upkeep.sweeping.CompareAndSwap(false, true) {
		t.Background(func() (more bool) {
			more = srv.sweep(nowNS + int64(sweepTime))
			srv.upkeep.sweeping.Store(more)
			return more
		})
	}
	srv.sessions.Persist.Tick()
	srv.followGaps(srv.sessions.Heap.Gaps())
	if ticks%50 == 0 {
		srv.giveBack()
		srv.sockets.WarnOfCertificate()
	}
	if ticks%10 == 0 {
		st := srv.sessions.Stats
		now := counted{st.Commands.Load(), st.InputBytes.Load(), st.OutputBytes.Load()}
		st.CommandsPerSecond.Store(now.commands - last.commands)
		st.InputPerSecond.Store(now.input - last.input)
		st.OutputPerSecond.Store(now.output - last.output)
		*last = now
		srv.sessions.Heap.Read() // for its peak
		srv.sessions.Top.Advance(srv.sessions.Clock())
		srv.followRoom(srv.sessions.Clock())
		srv.sessions.Log.Flush()
		srv.tellClientsHold()
		srv.sessions.WakeIdle()
	}
}

// tellClientsHold adds the size of clients' buffers to the limit of the garbage collector. Without it, a few clients that do not
// read their replies make the collector run all the time, and all clients are served at a quarter of the speed. The size is
// rounded down to 4 MB, so small changes do not move the limit.
func (srv *Server) tellClientsHold() {
	if srv.sessions.Config.OnMemory == nil {
		return
	}
	held := int64(0)
	for _, c := range srv.sessions.Clients.All() {
		held += c.Buffers()
	}
	held &^= 1<<22 - 1
	if changed := srv.upkeep.clientsHold.Swap(held) != held; changed || srv.upkeep.keysReported.Load() != srv.keysMayHold() {
		srv.tellMemory(held)
	}
}

// keysMayHold is maxmemory, or what keys still hold while those above it are evicted.
func (srv *Server) keysMayHold() int64 {
	most := srv.sessions.Config.MaxMemory.Get()
	if most == 0 {
		return 0
	}
	return max(most, srv.sessions.Store.MaxBytes())
}

// tellMemory sets the limit of the garbage collector. Where that was at once below what keys still held, the collector ran all the
// time, and event loops had to help it, for up to 160 ms.
func (srv *Server) tellMemory(clients int64) {
	if srv.sessions.Config.OnMemory != nil {
		keys := srv.keysMayHold()
		srv.upkeep.keysReported.Store(keys)
		srv.sessions.Config.OnMemory(keys, clients)
	}
}

// gapsAllowed is how much may lie between objects beside an eighth of maxmemory. The collector's limit has room for it.
const gapsAllowed = 16 << 20

// followGaps lets keys take less where more than allowed lies between objects. So a client gains no memory by leaving one key in each
// stretch of keys of its size.
func (srv *Server) followGaps(gaps int64) {
	gaps = max(0, gaps-gapsAllowed-srv.sessions.Config.MaxMemory.Get()/8) &^ (1<<20 - 1)
	if srv.upkeep.gaps.Swap(gaps) != gaps {
		srv.limitKeys()
	}
}

// limitKeys puts the settings that bound keys into effect. While files are read, there may be a sixteenth more: what was written while keys
// changed may tell of new keys before it tells of those that went for them.
func (srv *Server) limitKeys() {
	cfg := srv.sessions.Config
	srv.upkeep.limiting.Lock() // from before they are read: so the last call has the last settings
	keys, most := cfg.MaxKeys.Get(), cfg.MaxMemory.Get()
	most = max(most-srv.upkeep.gaps.Load(), most/8)
	if srv.sessions.Gate.Has(gate.Loading) {
		keys, most = keys+keys/16, most+most/16
	}
	srv.sessions.Store.SetCapacity(keys, most, cfg.NoEviction())
	srv.upkeep.limiting.Unlock()
	srv.shrink()
}

// giveBack gives unused memory back to the system once there is much more of it than there was at least. By itself, the collector does so
// 2 minutes after keys have expired.
func (srv *Server) giveBack() {
	least, spare, keys := &srv.upkeep.leastSpare, srv.spareBytes(), srv.sessions.Store.Room.Bytes.Load()
	if spare-least.Load() > max(16<<20, keys/10) {
		go func() {
			debug.FreeOSMemory()
			least.Store(srv.spareBytes())
		}()
	} else if spare < least.Load() {
		least.Store(spare)
	}
}

// spareBytes is the memory of the process beside that of keys.
func (srv *Server) spareBytes() int64 {
	_, held, _ := srv.sessions.Heap.Read()
	return held - srv.sessions.Store.Room.Bytes.Load()
}

// shrinkNS is how long keys are evicted at a time when there may be fewer than before.
const shrinkNS = 500_000

// shrink evicts the keys for which there is no room any more. After the first of them an event loop goes on between its rounds, as Redis
// does: of 10 million keys that takes 7 s.
func (srv *Server) shrink() {
	t := srv.carries.Load()
	if t == nil { // nobody waits
		for srv.sessions.Store.Shrink() { //nolint:revive // it does all
		}
		return
	}
	if srv.shrinkSome() && srv.upkeep.shrinking.CompareAndSwap(false, true) {
		go func() { // without event loops Background returns after the last step
			defer srv.sessions.Survive("eviction")
			t.Background(func() (more bool) {
				more = srv.shrinkSome()
				srv.upkeep.shrinking.Store(more)
				return more
			})
		}()
	}
}

// shrinkSome evicts for shrinkNS, and reports whether there is more to evict.
func (srv *Server) shrinkSome() (more bool) {
	for untilNS := srv.sessions.Clock() + shrinkNS; srv.sessions.Store.Shrink(); {
		if srv.sessions.Clock() >= untilNS {
			return true
		}
	}
	return false
}

// sweep removes a few expired keys. It reports whether there are more and time is left.
func (srv *Server) sweep(untilNS int64) (more bool) {
	nowNS := srv.sessions.Clock()
	return srv.sessions.Store.Sweep(nowNS) && nowNS < untilNS
}
