package world

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"celld/integration_test/simulation/disk"
	"celld/internal/enginetest"
)

// fault is something that happens at an instant.
type fault struct {
	at   time.Duration
	kind string
	long time.Duration // how long it lasts
}

// kinds are what may happen, and how.
var kinds = map[string]func(w *world, f fault){
	"kill":      func(w *world, f fault) { m := w.some(f); m.restart(f, func() { m.kill(false) }) },
	"power":     func(w *world, f fault) { m := w.some(f); m.restart(f, func() { m.kill(true) }) },
	"stop":      func(w *world, f fault) { m := w.some(f); m.restart(f, m.stop) },
	"cut":       func(w *world, _ fault) { w.network.CutOne() },
	"full disk": func(w *world, f fault) { w.some(f).refuse(f, syscall.ENOSPC, disk.Write, disk.Create, disk.Append) },
	"bad disk":  func(w *world, f fault) { w.some(f).refuse(f, syscall.EIO, disk.Sync, disk.Write, disk.SyncDir) },
	"bad sync":  func(w *world, f fault) { w.some(f).refuse(f, syscall.EIO, disk.Sync) },
	"clock set": func(w *world, f fault) { // by up to an hour, forwards or back
		w.some(f).setClock((f.long - time.Second) * time.Duration(1+(f.long/time.Millisecond)%3600))
	},
	"engine killed": func(w *world, f fault) {
		w.fleet.loses(f, func(n *enginetest.Node) { n.Kill() }, func(n *enginetest.Node) { n.Start() })
	},
	"engine paused": func(w *world, f fault) {
		w.fleet.fails(f, (*enginetest.Node).Pause, func(n *enginetest.Node) { w.notReady(f); n.Resume() })
	},
	"engine fails over": func(w *world, f fault) {
		w.fleet.loses(f, func(n *enginetest.Node) { w.fleet.engine.Failover(n) }, func(*enginetest.Node) {})
	},
	"engine loads": func(w *world, f fault) {
		w.fleet.fails(f, func(n *enginetest.Node) { n.Loading(true) }, func(n *enginetest.Node) { n.Loading(false) })
	},
	"engine read-only": func(w *world, f fault) {
		w.fleet.fails(f, func(n *enginetest.Node) { n.ReadOnly(true) }, func(n *enginetest.Node) { n.ReadOnly(false) })
	},
	"engine full": func(w *world, f fault) {
		w.fleet.fails(f, func(n *enginetest.Node) { n.OOM(true) }, func(n *enginetest.Node) { n.OOM(false) })
	},
	"engine's scripts gone": func(w *world, f fault) { w.fleet.fails(f, (*enginetest.Node).FlushScripts, func(*enginetest.Node) {}) },
	"engine's replies lost": func(w *world, f fault) {
		w.fleet.fails(f, func(n *enginetest.Node) { n.DropReplies(1 + int(f.long%7)) }, func(n *enginetest.Node) { n.DropReplies(0) })
	},
	"engine evicts": func(w *world, f fault) {
		w.fleet.loses(f, func(n *enginetest.Node) { n.Evict(1 + int(f.long%3)) }, func(*enginetest.Node) {})
	},
	"engine isolated": func(w *world, f fault) { w.fleet.loses(f, (*enginetest.Node).Isolate, (*enginetest.Node).Heal) },
	"engine busy": func(w *world, f fault) {
		w.fleet.fails(f, func(n *enginetest.Node) { n.Busy(true) }, func(n *enginetest.Node) { n.Busy(false) })
	},
	"engine flushed": func(w *world, f fault) { w.fleet.loses(f, (*enginetest.Node).Flush, func(*enginetest.Node) {}) },
	"engine's clock set": func(w *world, f fault) {
		w.fleet.fails(f, func(n *enginetest.Node) { n.SetClock(f.long%(2*mostAhead) - mostAhead) },
			func(n *enginetest.Node) { n.SetClock(0) })
	},
	"killed without the engine": func(w *world, f fault) { // only in worlds about configurations
		m := w.some(f)
		var starts sync.WaitGroup
		w.fleet.fails(f, func(n *enginetest.Node) { n.Pause(); m.kill(false); starts.Go(m.recover) }, (*enginetest.Node).Resume)
		starts.Wait()
	},
	stopWithoutScripts: func(w *world, f fault) {
		m := w.some(f)
		m.restart(f, func() { w.fleet.withoutScripts(m.stop) })
	},
	handOver:         func(w *world, f fault) { w.some(f).handOver(f) },
	killWithFullDisk: func(w *world, f fault) { m := w.some(f); m.restart(f, m.killWithFullDisk) },
	"slot moves":     func(w *world, f fault) { w.fleet.moves(f) },
}

// handOver comes only where there are files: else the new process serves beside the old one.
const handOver = "handed over"

// killWithFullDisk comes only in worlds about crashes where appendfsync is always: no answer may be of what was refused.
const killWithFullDisk = "kill as the disk is full"

// stopWithoutScripts comes only in worlds about leases. What the process gives back at its end has to be sent twice.
const stopWithoutScripts = "stop as the engine knows no script"

// notReady sees that probes are told where the only engine has not answered for so long that each machine must know.
func (w *world) notReady(f fault) {
	if !w.plan.has("http") || w.plan.engine != "alone" || f.long < w.plan.timeout+time.Second {
		return
	}
	c := w.caller("a probe", 202)
	for _, m := range w.all {
		if status, _ := w.fetch(&c, m, "/readyz", http.StatusServiceUnavailable); status != 0 {
			w.count("not ready")
		}
	}
}

// some is the machine that a fault is about.
func (w *world) some(f fault) *machine { return w.all[int(f.long/time.Microsecond)%len(w.all)] }

// faultsOf are the kinds that a plan may have.
func (p *plan) faultsOf() []string {
	switch p.engine {
	case noEngine:
		if p.steps { // a process that starts takes limits as its wall clock has them
			return []string{"clock set", "cut", "full disk", "bad disk", "bad sync"}
		}
		return []string{"kill", "power", "stop", "cut", "full disk", "bad disk", "bad sync"}
	case "alone":
		return append([]string{"kill", "stop", "cut"}, engineFaults...)
	case "sentinel":
		return append([]string{"kill", "stop", "cut", "engine fails over"}, engineFaults...)
	}
	return append([]string{"kill", "stop", "cut", "engine fails over", "slot moves"}, engineFaults...)
}

var engineFaults = []string{"engine killed", "engine paused", "engine loads", "engine read-only", "engine full", "engine's scripts gone",
	"engine's replies lost", "engine evicts", "engine isolated", "engine busy", "engine flushed", "engine's clock set"}

// mostAhead is how far an engine's clock is set. The time by which calls are checked is as uncertain.
const mostAhead = 50 * time.Millisecond

func (p *plan) drawFaults() {
	r := p.chance("faults")
	names := slices.DeleteFunc(p.faultsOf(), func(string) bool { return r.IntN(2) == 0 })
	if few := p.chance("few kinds of faults"); few.IntN(2) == 0 { // so that two of them meet
		few.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:min(len(names), 1+few.IntN(3))]
	}
	for range r.IntN(8) {
		if len(names) > 0 {
			p.faults = append(p.faults, fault{
				time.Duration(r.Int64N(int64(p.spread()) + 1)), names[r.IntN(len(names))], time.Duration(r.Int64N(int64(2 * time.Second))),
			})
		}
	}
	slices.SortStableFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
	if r := p.chance("hand-overs"); (p.fsync != "" || p.snapshots) && !p.steps && r.IntN(2) == 0 {
		for i := range p.faults {
			if f := &p.faults[i]; f.kind == "stop" || f.kind == "kill" {
				f.kind = handOver
			}
		}
	}
	if p.chance("faults close together").IntN(3) == 0 {
		for i := range p.faults {
			p.faults[i].at = p.faults[0].at + (p.faults[i].at-p.faults[0].at)/20
		}
	}
}

// spread is roughly how long clients call.
func (p *plan) spread() time.Duration {
	return time.Duration(p.calls) * (p.think/2 + p.latency + 100*time.Microsecond) / time.Duration(p.pipeline)
}

// runFaults lets them happen. Those of a machine, and those of the engine, come one after the other.
func (w *world) runFaults() {
	var all sync.WaitGroup
	for i, f := range w.plan.faults {
		if time.Sleep(f.at - w.since()); w.plan.masked[i] {
			continue
		}
		all.Go(func() {
			if well := w.well(f); well != nil {
				well.Lock()
				defer well.Unlock()
			}
			w.event("fault", "%d: %s for %s", i, f.kind, f.long)
			w.count(f.kind)
			kinds[f.kind](w, f)
		})
	}
	all.Wait()
}

// well is locked while something is not; nil: a fault lasts no time.
func (w *world) well(f fault) *sync.Mutex {
	switch {
	case f.kind == "cut", f.kind == "clock set":
		return nil
	case strings.HasPrefix(f.kind, "engine"), f.kind == "slot moves", f.kind == "killed without the engine":
		return &w.fleet.well
	}
	return &w.some(f).well
}

// restart ends the process, and starts another. After half of the restarts that comes soon, so that few limits are full again.
func (m *machine) restart(f fault, end func()) {
	if m.w.plan.focus == "crashes" {
		m.midst(m.w.plan.chance("midst " + f.at.String()))
	}
	end()
	if f.long%2 == 0 {
		f.long /= 50
	}
	time.Sleep(f.long)
	m.recover()
}

// refuse makes some operations of the disk fail for a while.
func (m *machine) refuse(f fault, err error, ops ...disk.Op) {
	m.mu.Lock()
	m.failing = true
	m.mu.Unlock()
	m.refuses(m.w.plan.chance("refusals "+f.at.String()), err, ops...)
	time.Sleep(f.long)
	m.disk.SetFail(nil)
	m.w.event("fault", "the disk is well again")
	// celld tries again within a second, and writes its files anew: 5 s after a snapshot or rewrite that failed.
	time.Sleep(8*time.Second + 100*m.w.plan.slowDisk)
	m.mu.Lock()
	m.failing = false
	m.mu.Unlock()
}

// killWithFullDisk kills the process soon after the disk has refused something.
func (m *machine) killWithFullDisk() {
	r := m.w.plan.chance("full disk of " + m.addr)
	refused := m.refuses(r, syscall.ENOSPC, disk.Write, disk.Create, disk.Append)
	select {
	case <-refused:
	case <-time.After(time.Second):
	}
	time.Sleep(time.Duration(r.Int64N(int64(2*m.w.plan.slowDisk + 5*time.Millisecond))))
	m.kill(false)
	m.disk.SetFail(nil)
}

// refuses makes three of four of some operations of the disk fail. The channel is closed when the first has.
func (m *machine) refuses(r *rand.Rand, err error, ops ...disk.Op) <-chan struct{} {
	refused := make(chan struct{})
	first := sync.OnceFunc(func() { close(refused) })
	m.disk.SetFail(func(op disk.Op, _ string) error {
		if slices.Contains(ops, op) && r.IntN(4) > 0 {
			m.w.count("refused " + string(op))
			first()
			return err
		}
		return nil
	})
	return refused
}

// fails reports whether there is a fault of this kind.
func (p *plan) fails(kind string) bool {
	return slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind == kind })
}

// orderly reports whether nothing fails but connections, and processes end as SIGTERM ends them.
func (p *plan) orderly() bool {
	return !slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind != "cut" && f.kind != "stop" && f.kind != stopWithoutScripts })
}
