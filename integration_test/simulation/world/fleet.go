package world

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"celld/integration_test/simulation/check"
	"celld/internal/enginetest"
	"celld/store/policy"
	"celld/store/remote"
	"celld/store/remote/link"
)

// noEngine is the plan of a world whose limits are in memory.
const noEngine = ""

// fleet is the engine that all machines share.
type fleet struct {
	w      *world
	engine *enginetest.Engine
	rnd    *rand.Rand // of the faults
	well   sync.Mutex // see world.well

	second time.Duration // the last in which somebody has connected
	dials  int           // in that second
}

// mostDials is how many connections a machine may open in a second. While a node is away, celld looks for it six times a second, by some
// connections each: that is 30. Without a pause it would be hundreds, which keep a core busy.
const mostDials = 60

func (f *fleet) dialed(to string) {
	f.w.mu.Lock()
	if second := time.Since(f.w.began).Truncate(time.Second); second != f.second {
		f.second, f.dials = second, 0
	}
	f.dials++
	tooMany := f.dials == mostDials*f.w.plan.machines+1
	f.w.mu.Unlock()
	if tooMany {
		f.w.wrong("the machines connect without a pause, now to %s", to)
	}
}

// drawFleet draws the engine, and limits that it can keep as buckets.
func (p *plan) drawFleet(r *rand.Rand) {
	p.machines, p.replicas, p.lag = 1+r.IntN(4), r.IntN(2), oneOf(r, 0, time.Millisecond, 200*time.Millisecond)
	if p.engine == "sentinel" {
		p.replicas = 1 + r.IntN(2)
	}
	p.fsync, p.settings, p.slowDisk = "", nil, 0
	p.settings = append(p.settings, [2]string{"store", "redis://engine"}, [2]string{"store-prefix", oneOf(r, "", "p:")})
	if r.IntN(3) == 0 {
		p.settings = append(p.settings, [2]string{"store-denials", "0"})
	}
	p.drawBounded(r)
}

func newFleet(w *world) *fleet {
	p := &w.plan
	f := &fleet{w: w, rnd: p.chance("faults of the engine")}
	o := enginetest.Options{Replicas: p.replicas, Lag: p.lag, Rand: p.chance("engine"), Files: enginetest.EachWrite,
		Kind: map[string]enginetest.Kind{
			"alone": enginetest.Alone, "cluster": enginetest.Cluster, "sentinel": enginetest.Sentinel}[p.engine]}
	o.Clock = func(int) int64 { return time.Now().Add(p.ahead).UnixNano() }
	if p.replicas > 0 {
		o.NodeTimeout, o.Notice = 2*time.Second, 500*time.Millisecond
	}
	f.engine = enginetest.New(o)
	w.network.Refuses = func(addr string) bool { return f.engine.At(addr) != nil && !f.engine.Listens(addr) }
	for _, addr := range f.engine.Addrs() {
		ln, err := w.network.Listen(addr)
		if err != nil {
			panic(err)
		}
		go f.serve(addr, ln)
	}
	return f
}

func (f *fleet) serve(addr string, ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = f.engine.Serve(addr, conn)
			conn.Close()
		}()
	}
}

// open opens the engine for a process.
func (f *fleet) open(l *life, o remote.Options, policies *policy.Set, log *slog.Logger) (*remote.Store, error) {
	o.URL, o.Policies, o.Log = f.engine.URL(), policies, log
	o.Dial = func(_ context.Context, to string) (net.Conn, error) {
		if l.isKilled() {
			return nil, net.ErrClosed
		}
		f.dialed(to)
		conn, err := f.w.network.Dial(l.m.addr+":0", to)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	return remote.Open(o)
}

// slack is how far celld's idea of the engine's time may be wrong: it knows when it has asked, and when the answer came.
func (f *fleet) slack() int64 {
	slack := 4*f.w.plan.latency + time.Millisecond
	if f.w.plan.fails("engine's clock set") {
		slack += mostAhead
	}
	return int64(slack)
}

// masters are the nodes that decide.
func (f *fleet) masters() (list []*enginetest.Node) {
	for _, k := range f.w.plan.keys {
		if n := f.engine.MasterOf(f.prefix() + k.name); n != nil && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func (f *fleet) prefix() string {
	for _, s := range f.w.plan.settings {
		if s[0] == "store-prefix" {
			return s[1]
		}
	}
	return ""
}

// withoutScripts does something while the masters forget each script within a millisecond.
func (f *fleet) withoutScripts(do func()) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			for _, n := range f.masters() {
				n.FlushScripts()
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
}

// fails does something to a master for a while.
func (f *fleet) fails(is fault, begin, end func(*enginetest.Node)) {
	masters := f.masters()
	if len(masters) == 0 {
		return
	}
	n := masters[f.rnd.IntN(len(masters))]
	begin(n)
	time.Sleep(is.long)
	end(n)
	f.w.event("fault", "the engine is well again")
}

// loses is fails, where what was granted may be forgotten.
func (f *fleet) loses(is fault, begin, end func(*enginetest.Node)) {
	at := f.w.event("fault", "the engine may forget")
	f.w.mu.Lock()
	number := len(f.w.history.Losses)
	f.w.history.Losses = append(f.w.history.Losses, check.Loss{Began: at, Ended: math.MaxInt64, FromNS: time.Now().UnixNano() - f.slack()})
	f.w.mu.Unlock()
	f.fails(is, begin, end)
	time.Sleep(4*time.Second + f.w.plan.lag) // until each node knows who is master
	ended := f.w.event("fault", "the engine forgets no more")
	f.w.mu.Lock()
	f.w.history.Losses[number].Ended = ended
	f.w.mu.Unlock()
}

// moves moves the slot of a key to another master.
func (f *fleet) moves(is fault) {
	masters := f.masters()
	if len(masters) < 2 {
		return
	}
	k := f.w.plan.keys[f.rnd.IntN(len(f.w.plan.keys))]
	from := f.engine.MasterOf(f.prefix() + k.name)
	to := masters[f.rnd.IntN(len(masters))]
	if from == to {
		return
	}
	move := f.engine.MoveSlot(int(link.HashSlot(f.prefix()+k.name)), to)
	time.Sleep(is.long / 2)
	move.Keys(1)
	time.Sleep(is.long / 2)
	for range 100 {
		if move.Keys(-1) == 0 && move.End() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (f *fleet) check() {
	for _, command := range f.engine.Unknown() {
		f.w.wrong("the engine was asked for %s, which is not simulated", command)
	}
}
