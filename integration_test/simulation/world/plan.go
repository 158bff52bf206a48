package world

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"celld/cell"
)

// plan is what a seed draws: sizes, settings, limits and faults.
type plan struct {
	seed      uint64
	masked    map[int]bool
	folder    string // of files that settings name
	clients   int
	calls     int           // of each client
	think     time.Duration // the most between two batches of a client
	pipeline  int           // the most calls in a batch
	latency   time.Duration
	pieces    bool
	keys      []key
	settings  [][2]string
	fsync     string // "": nothing is kept
	slowDisk  time.Duration
	reorders  bool // the disk
	steps     bool // clocks are set
	machines  int
	engine    string
	replicas  int
	lag       time.Duration // of replicas
	timeout   time.Duration // of calls on the engine
	ahead     time.Duration // the engine's clock
	deletes   bool          // clients delete keys of the engine
	snapshots bool          // and no append-only file
	stalls    bool          // machines stand still for a moment, again and again
	odd       bool          // clients may send calls in parts, read late, and close their half
	scenes    []scene
	turns     time.Duration // the most between two configurations
	binds     bool          // all leases end with their connection
	bursts    time.Duration // clients call all at once, so often; 0: each as it likes
	storms    bool          // they call for all that there is then, and seldom between
	focus     string        // "": none
	faults    []fault
}

// key is a key with the limit that all callers use for it.
type key struct {
	name  string
	text  string // of the limit; "": CL.THROTTLE asks
	limit cell.Limit
	more  []cell.Limit // the others of text
	burst [3]int64     // max_burst, count, period of CL.THROTTLE
	waits bool         // some callers wait
	held  bool         // it limits what is in flight
	named bool         // some of its limits have names
}

// Numbers of what can be left out: faults from 0 on, clients, scenes, and calls on keys from here on, and from n·MaskCalls on the single
// calls of the caller whose host is n, or its rounds.
const (
	maskClients = 1000
	maskScenes  = 2000
	maskKeys    = 3000
	MaskCalls   = 10_000
)

// leavesOut reports whether calls on a key are left out, and those on none if any are.
func (p *plan) leavesOut(name string) bool {
	some := false
	for i, k := range p.keys {
		some = some || p.masked[maskKeys+i]
		if k.name == name {
			return p.masked[maskKeys+i]
		}
	}
	return some
}

// number reads a whole number, 0 where there is none.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// limits are those that keys have, one of each algorithm at least.
var limits = []string{
	"5/1s", "100/1m", "3/10s,burst=1", "10/1s,algo=window", "7/2s,algo=slide", "20/3s,algo=slide,buckets=6", "4/1s,algo=log",
	"5/1s,block=2s", "1/100ms", "1000/1h,algo=window,align=clock", "10/1s,warmup=2s,burst=1", "30/minute",
	"20/1h", "50/1h,algo=window", "30/1h,algo=log", "40/1h,algo=slide", "60/1h,burst=20",
}

// together are limits that a call asks for at once.
var together = []string{"5/1s 100/1m", "10/1s,algo=window 3/10s,burst=1", "4/1s,algo=log 30/1m,algo=window",
	"7/2s,algo=slide 5/1s,block=2s 40/1m"}

// draw draws a plan. What is added draws from a source of its own, so that seeds that have found a fault go on to find it.
func draw(seed uint64, masked map[int]bool, folder string) plan {
	p := plan{seed: seed, masked: masked, folder: folder}
	r := p.chance("plan")
	p.clients = 1 + r.IntN(5)
	p.calls = 20 + r.IntN(150)
	p.think = oneOf(r, 0, time.Millisecond, 20*time.Millisecond, 300*time.Millisecond)
	p.pipeline = oneOf(r, 1, 1, 4, 40)
	p.latency = oneOf(r, 0, 100*time.Microsecond, 5*time.Millisecond)
	p.pieces = r.IntN(2) == 0
	p.steps = p.chance("whether clocks are set").IntN(4) == 0
	for i := range oneOf(r, 1, 3, 10) {
		k := key{name: fmt.Sprintf("k%d", i)}
		if r.IntN(2) == 0 {
			k.burst = [3]int64{r.Int64N(10), 1 + r.Int64N(20), 1 + r.Int64N(5)}
			if long := p.chance("long limit of " + k.name); long.IntN(2) == 0 {
				k.burst[0], k.burst[2] = 3*k.burst[0], 3600
			}
		} else {
			k.text, k.limit = limitOf(limits[r.IntN(len(limits))])
			for p.steps && (k.limit.Clock || k.limit.Unit != 0) { // which follow the wall clock
				k.text, k.limit = limitOf(limits[r.IntN(len(limits))])
			}
		}
		switch r := p.chance("kind of key " + k.name); r.IntN(6) {
		case 0:
			k = key{name: k.name, waits: true}
			k.text, k.limit = limitOf(oneOf(r, "5/1s", "20/1s,burst=3", "3/10s,burst=1", "1/100ms"))
		case 1:
			k = key{name: k.name, held: true}
			k.text, k.limit = limitOf(oneOf(r, "1/1s,algo=conc", "3/500ms,algo=conc", "10/1m,algo=conc"))
		case 2:
			if k.text != "" {
				k = key{name: k.name}
				k.asksFor(oneOf(r, together...))
			}
		}
		p.keys = append(p.keys, k)
	}
	p.fsync = oneOf(r, "", "no", "everysec", "always")
	if p.fsync != "" {
		p.settings = append(p.settings, [2]string{"appendonly", "yes"}, [2]string{"appendfsync", p.fsync}, [2]string{"dir", "/data"})
		if r.IntN(2) == 0 {
			p.settings = append(p.settings, [2]string{"save", "1 1"})
		}
	}
	p.slowDisk = oneOf(r, 0, 0, time.Millisecond, 100*time.Millisecond)
	p.reorders = r.IntN(2) == 0
	p.machines = 1
	if p.engine = oneOf(r, noEngine, noEngine, "alone", "cluster", "sentinel"); p.engine != noEngine {
		p.drawFleet(r)
	}
	p.drawMore()
	p.turns = time.Second
	p.odd = p.chance("odd clients").IntN(2) == 0
	p.stalls = p.chance("stalls").IntN(5) == 0
	p.drawScenes()
	p.drawFaults()
	p.drawFocus()
	p.drawNames()
	return p
}

// drawNames gives limits names, so that calls may take more from one than from another.
func (p *plan) drawNames() {
	for i := range p.keys {
		k, r := &p.keys[i], p.chance("names of key "+p.keys[i].name)
		if k.text == "" || k.held || k.waits || p.bounded() || r.IntN(3) > 0 {
			continue
		}
		limits := strings.Fields(k.text)
		for j := range limits {
			if len(limits) == 1 || r.IntN(2) == 0 {
				limits[j] += ",name=" + oneOf(r, "a", "b")
			}
		}
		k.named, k.more = true, nil
		k.asksFor(strings.Join(limits, " "))
	}
}

// asksFor makes a key that of the limits in a text.
func (k *key) asksFor(text string) {
	k.text = text
	for i, text := range strings.Fields(text) {
		if _, l := limitOf(text); i == 0 {
			k.limit = l
		} else {
			k.more = append(k.more, l)
		}
	}
}

// drawMore draws what few worlds have, from a source of its own.
func (p *plan) drawMore() {
	switch r := p.chance("more"); {
	case p.engine != noEngine:
		p.timeout, p.deletes = oneOf(r, 500*time.Millisecond, 500*time.Millisecond, 3*time.Second), r.IntN(2) == 0
		p.set("store-timeout", p.timeout.String())
		p.ahead = oneOf(r, 0, 0, 5*time.Second, -5*time.Second)
		if r := p.chance("taking ahead"); r.IntN(2) == 0 {
			p.set("store-ahead", oneOf(r, "20", "100", "500"))
		}
	case p.fsync == "":
		if p.snapshots = r.IntN(3) == 0; p.snapshots {
			p.set("save", "1 1")
			p.set("dir", "/data")
		}
	case r.IntN(2) == 0:
		p.set("auto-aof-rewrite-min-size", "1000")
		p.set("auto-aof-rewrite-percentage", "20")
	}
}

// bounded reports whether nobody knows when the machine decides, or what it has forgotten.
func (p *plan) bounded() bool { return p.engine != noEngine || p.evicts() }

// evicts reports whether keys give way to new ones.
func (p *plan) evicts() bool { return p.has("crowd") && p.setting("maxmemory-policy") == "allkeys-lru" }

// boundedLimits are those whose calls can be checked then.
var boundedLimits = []string{"5/1s", "100/1m", "3/10s,burst=1", "1/100ms", "10/1s,algo=window", "6/2s,algo=log", "7/2s,algo=slide",
	"1000/1h,algo=window,align=clock", "20/3s,algo=slide,buckets=6", "20/1h", "30/1h,algo=log", "40/1h,algo=window"}

// drawBounded gives keys such limits.
func (p *plan) drawBounded(r *rand.Rand) {
	for i := range p.keys {
		if k := &p.keys[i]; k.text != "" && !k.held && !k.waits {
			k.more = nil
			k.text, k.limit = limitOf(boundedLimits[r.IntN(len(boundedLimits))])
		}
	}
}

// arrives is how long a call is under way at most where no fault holds it up: the replies to others may wait for the disk some times.
func (p *plan) arrives() time.Duration {
	usual := 4*p.latency + 20*p.slowDisk + 20*time.Millisecond
	if p.stalls {
		usual += 100 * longestStall
	}
	return usual
}

// lasts is how long a lease may outlive its end, or its connection.
func (p *plan) lasts() time.Duration { return time.Second + p.arrives() }

// patience is how long calls may take beyond their waits, and beyond the timeout of each on an engine. While a process restarts, nobody
// is connected to it.
func (p *plan) patience() time.Duration {
	all := 2*time.Second + p.arrives()
	if p.engine != noEngine {
		return all
	}
	for _, f := range p.faults {
		all += f.long + 5*time.Second
	}
	return all
}

func limitOf(text string) (string, cell.Limit) {
	l, err := cell.ParseLimit(text)
	if err != nil {
		panic(err)
	}
	return text, l
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (p *plan) String() string {
	var b strings.Builder
	if p.focus != "" {
		fmt.Fprintf(&b, "about %s: ", p.focus)
	}
	fmt.Fprintf(&b, "%d clients, %d calls each in batches of up to %d, every %s at most, latency %s, pieces %v, ",
		p.clients, p.calls, p.pipeline, p.think, p.latency, p.pieces)
	fmt.Fprintf(&b, "%d machines, engine %q with %d replicas, lag %s, ", p.machines, p.engine, p.replicas, p.lag)
	fmt.Fprintf(&b, "slow disk %s, which reorders %v, clocks are set %v, machines stall %v, settings %v; keys", p.slowDisk, p.reorders,
		p.steps, p.stalls, p.settings)
	for _, k := range p.keys {
		fmt.Fprintf(&b, " %s=%s%v", k.name, k.text, k.burst)
	}
	for i, s := range p.scenes {
		fmt.Fprintf(&b, "; scene %d: %s", maskScenes+i, s.name)
	}
	for i, f := range p.faults {
		fmt.Fprintf(&b, "; fault %d at %s: %s", i, f.at, f.kind)
	}
	return b.String()
}
