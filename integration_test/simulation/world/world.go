package world

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"celld/integration_test/simulation/check"
	"celld/integration_test/simulation/network"
)

// world is one run. In WebAssembly one goroutine runs at a time, and the lock is never waited for.
type world struct {
	plan    plan
	network *network.Network
	fleet   *fleet // nil: limits are in memory, and there is one machine
	all     []*machine

	mu      sync.Mutex
	began   time.Time
	prints  bool
	hashes  bool // else the hash is that of nothing: to format all events takes a fifth of a run
	hash    hash.Hash64
	events  int64
	secret  int // the turn of the password
	counts  counts
	rounds  map[int]int // how many each caller may leave out, by its host
	history check.History
	faults  []string // what is wrong
	finally []func() // what scenes look at when a process has ended once more
}

// longest is when a world that has not come to its end hangs.
const longest = 10 * time.Minute

func newWorld(seed uint64, masked map[int]bool, folder string, prints bool) *world {
	w := &world{plan: draw(seed, masked, folder), began: time.Now(), prints: prints, hash: fnv.New64a(),
		counts: newCounts(), rounds: map[int]int{}}
	w.network = network.New(w.plan.chance("network"))
	w.network.Latency, w.network.Pieces = w.plan.latency, w.plan.pieces
	if w.plan.engine != noEngine {
		w.fleet = newFleet(w)
	}
	w.write(aclFile, rights(0))
	w.write(policiesFile, "")
	w.write(envoyFile, envoyConfig(0))
	if w.plan.has("secrets") {
		w.writeSecrets(0)
	}
	for i := range w.plan.machines {
		w.all = append(w.all, newMachine(w, i))
	}
	if w.plan.has("older") {
		w.putOlder()
	}
	return w
}

func (w *world) since() time.Duration { return time.Since(w.began) }

// nowNS is the time by which calls are decided, at the earliest and at the latest.
func (w *world) nowNS() (earliest, latest int64) {
	now, slack := time.Now().UnixNano(), int64(0)
	if w.fleet != nil {
		slack = w.fleet.slack()
	}
	return now - slack, now + slack
}

// event notes something in the trace, and returns its number.
func (w *world) event(who, format string, args ...any) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	at := w.since() // which moves the clock, so each run looks
	if !w.prints && !w.hashes {
		return w.events
	}
	line := fmt.Sprintf("%d %12s %s: %s\n", w.events, at, who, fmt.Sprintf(format, args...))
	w.hash.Write([]byte(line))
	if w.prints {
		fmt.Print(line)
	}
	return w.events
}

// wrong notes what must not be.
func (w *world) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.event("checker", "%s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, text)
}

// run starts the machines, lets the clients and the faults go on until their ends, and stops the machines.
func (w *world) run() {
	w.event("plan", "%s", w.plan.String())
	late := time.AfterFunc(longest, func() {
		w.endsHere("the world hangs")
	})
	defer late.Stop()
	for _, m := range w.all {
		m.start()
	}
	var all sync.WaitGroup
	for i := range w.plan.clients {
		if !w.plan.masked[maskClients+i] {
			c := newClient(w, i)
			all.Go(c.run)
		}
	}
	for i, s := range w.plan.scenes {
		if !w.plan.masked[maskScenes+i] {
			w.count("scene " + s.name)
			all.Go(func() { s.run(w) })
		}
	}
	all.Go(w.runFaults)
	all.Wait()
	for _, m := range w.all {
		m.recover()
		m.drained()
	}
	switch {
	case w.fleet == nil:
		w.lastLooks(w.all[0])
	case w.plan.orderly():
		w.lastLeases()
	}
	w.comeAgain()
	for _, m := range w.all {
		m.stop()
	}
	w.history.LastsNS, w.history.Evicts = int64(w.plan.lasts()), w.plan.evicts()
	w.history.Stalls, w.history.AheadNS = w.plan.stalls, number(w.plan.setting("store-ahead"))*1e6
	w.history.ArrivesNS = int64(w.plan.arrives())
	if w.fleet == nil || w.plan.orderly() && !w.plan.fails("cut") { // else a message about it may be lost
		w.history.WakesNS = int64(w.plan.arrives() + 200*time.Millisecond)
	}
	if w.fleet != nil {
		w.fleet.check()
	}
}

// lastLooks looks at all keys, and again after the process has ended once more.
func (w *world) lastLooks(m *machine) {
	c, r := newClient(w, w.plan.clients), w.plan.chance("last end")
	c.looks()
	if w.plan.steps { // a process that starts takes limits as its wall clock has them
		return
	}
	switch r.IntN(3) {
	case 0:
		m.stop()
	case 1:
		m.kill(false)
	case 2:
		m.kill(true)
	}
	m.recover()
	for _, f := range w.finally {
		f()
	}
	c.looks()
	c.hangUp()
}

// lastLeases asks for a lease of each key when all that connections held must be back, also where a process was told to end.
func (w *world) lastLeases() {
	time.Sleep(w.plan.lasts() + 100*time.Millisecond)
	c := newClient(w, w.plan.clients)
	for _, k := range w.plan.keys {
		if a := c.on(k); k.held && !w.plan.leavesOut(k.name) {
			a.Kind = check.Acquire
			a.says("CL.TAKE", k.name, k.text)
			c.ask([]asked{a})
		}
	}
	c.hangUp()
}

// chance returns a source of its own for each purpose, so that leaving out a fault or a client does not change what others draw.
func (p *plan) chance(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}
