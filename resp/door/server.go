package door

import (
	"os"
	"sync"
	"sync/atomic"

	"celld/persistence"
	"celld/resp/acl"
	"celld/resp/bound"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/command/spec"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/resp/gate"
	"celld/resp/loglimit"
	"celld/resp/stats"
	"celld/store"
	"celld/store/memory"
)

// Door is where all calls come in: by RESP in sessions, and by Take, Throttle, OnKey and Decide.
type Door struct {
	Config    *config.Config
	Gate      gate.Server // every call reads it, so it shares a cache line with fields that are hardly ever written
	Clock     func() int64
	Log       *loglimit.Logger
	Commands  *command.Table
	Execution Lock // of commands beside each other, and of scripts and transactions alone

	Store   *memory.Store // of the process, which has the policies, too
	Keys    store.Keys    // of the process: none where an engine keeps them
	Port    store.Store   // the store as all is asked of it
	Limiter store.Limiter
	Held    Held // for an engine
	Later   bound.Releaser

	Persist     *persistence.Disk
	Synchronous bool // replies wait for the disk

	Users   *acl.Users
	ACLLog  acl.Log
	Clients client.List

	Stats     *stats.Server
	Decisions *decisions.Rows
	Top       *decisions.Top
	Latency   *stats.Latency

	Refusing atomic.Bool    // no call may wait any more
	Ending   atomic.Bool    // the server does not wait for calls any more
	EndsNS   atomic.Int64   // with Ending: from then on a running script must end
	Lanes    atomic.Uint32  // that have been given out
	Exit     func(code int) // ends the process after a fault

	deciding decide.Server
	desks    sync.Pool
	within   waitingWithin
}

// Parts are what a Door is made of. All are needed, except those that say what nil means.
type Parts struct {
	Config  *config.Config
	Clock   func() int64
	Log     *loglimit.Logger
	Store   *memory.Store
	Persist *persistence.Disk
	Stats   *stats.Server
	Exit    func(code int) // ends the process after a fault; nil: os.Exit
}

// Init makes a door. Its Commands and Users are set then, and Begin called.
func (d *Door) Init(p Parts) {
	d.Config, d.Clock, d.Log, d.Store, d.Persist, d.Stats, d.Exit = p.Config, p.Clock, p.Log, p.Store, p.Persist, p.Stats, p.Exit
	if d.Exit == nil {
		d.Exit = os.Exit
	}
	d.Keys, d.Synchronous, d.Execution = p.Store, p.Persist.Synchronous(), newLock()
	d.Decisions, d.Top = decisions.NewRows(p.Store.Set), decisions.NewTop(p.Store.Set)
	d.Config.NearLimit.Follow(d.Decisions.NearLimit.Store)
	d.Later.Store, d.Later.Clock = func() store.Leases { return d.Port }, func() int64 { return d.Clock() }
	d.Later.Hurries, d.Later.Survive = d.Ending.Load, d.Survive
	d.Latency = stats.NewLatency(func() int64 { return d.Config.LatencyThreshold.Get() }, func() int64 { return d.Store.WallNS(d.Clock()) })
	d.Clients.OnMonitors = func(some bool) { d.Gate.Set(gate.Monitored, some) }
	d.Persist.OnRefusal(func(refused bool) { d.Gate.Set(gate.Refusing, refused) })
}

// Use makes a store keep the keys, and decide: the process's own, or an engine. Nobody may be served yet.
func (d *Door) Use(s store.Store, limiter store.Limiter) {
	d.Port, d.Limiter = s, limiter
	d.deciding = decide.Server{Table: d.Store, Store: s, Counts: d.Decisions, Top: d.Top, Commands: d.Commands,
		LogMax: d.Config.LogMax, WaitMax: d.Config.WaitMax}
}

// NewDecider returns a Decider that counts in this lane.
func (d *Door) NewDecider(lane uint8) *decide.Decider { return decide.New(&d.deciding, lane) }

// desk is what a call by values needs.
type desk struct {
	decider *decide.Decider
	stats   stats.Batch
	lane    uint8 // no other desk or session that decides has it, up to some
}

func (d *Door) desk() *desk {
	if c, ok := d.desks.Get().(*desk); ok {
		return c
	}
	lane := uint8(d.Lanes.Add(1))
	return &desk{decider: d.NewDecider(lane), lane: lane}
}

// Finish counts the commands of a batch, and returns the time of its end.
func (d *Door) Finish(batch *stats.Batch, lane uint8) (nowNS int64) {
	if calls := batch.Calls(); calls > 0 {
		d.Stats.Commands.Add(lane, calls)
	}
	nowNS, eachNS, fast := batch.Finish(d.Clock, lane)
	if fast {
		d.Latency.Note(stats.FastCommandEvent, eachNS)
	}
	return nowNS
}

// Commit returns when the changes so far are on the disk.
func (d *Door) Commit() error {
	startNS := d.Clock()
	err := d.Persist.Commit()
	d.Latency.Note(stats.FsyncEvent, d.Clock()-startNS)
	return err
}

// CountError counts a command whose reply is an error, and the error.
func (d *Door) CountError(row *command.Row, reply []byte) {
	stats.Of(row).Failed.Add(1)
	d.Stats.ErrorReplies.Add(1)
	d.Stats.Errors.Count(reply)
}

// Closed returns why the server does not run a command now; nil: it does.
func (d *Door) Closed(row *command.Row) *CallError {
	flags := row.Flags
	if row.Parent != nil {
		flags |= row.Parent.Flags
	}
	switch {
	case flags&spec.Loading == 0 && d.Gate.Has(gate.Loading):
		return errLoading
	case flags&spec.AllowBusy == 0 && d.Gate.Has(gate.Busy):
		return errBusy
	}
	return nil
}

// Unkept returns why a command may change nothing, if the disk has not taken what others changed before; or nil.
func (d *Door) Unkept(row *command.Row) *CallError {
	if row.Flags&spec.Write == 0 {
		return nil
	}
	return Misconf(d.Persist.Refusal())
}
