package world

import (
	"math/rand/v2"
	"slices"
	"time"
)

// focus is what a world is mostly about. What needs several things at once is rare where everything is drawn by itself: a call that was
// answered before it was synced is seen only by one who asks for the same key after a loss of power in that moment.
type focus struct {
	name  string
	suits func(p *plan) bool
	draw  func(p *plan, r *rand.Rand)
}

var focuses = []focus{
	{"crashes", func(p *plan) bool { return p.fsync != "" && !p.steps }, drawCrashes},
	{"units", func(p *plan) bool { return p.fsync != "" && p.engine == noEngine && !p.steps && !p.has("crowd") }, drawUnits},
	{"ahead", func(p *plan) bool { return p.engine != noEngine && !p.stalls }, drawAhead},
	{"lines", func(p *plan) bool { return !p.steps && !p.stalls }, drawLines},
	{"leases", func(p *plan) bool { return !p.steps && !p.stalls }, drawLeases},
	{"configurations", func(p *plan) bool { return p.has("policies") && !p.steps }, drawConfigurations},
}

// drawFocus gives a third of the worlds that suit one a focus.
func (p *plan) drawFocus() {
	for _, f := range focuses {
		if r := p.chance("focus " + f.name); f.suits(p) && r.IntN(3) == 0 {
			p.focus = f.name
			f.draw(p, r)
			return
		}
	}
}

// drawCrashes: whatever is forgotten is seen, as limits last for an hour, and processes end again and again, and start at once.
func drawCrashes(p *plan, r *rand.Rand) {
	p.fsync, p.slowDisk = oneOf(r, "always", "always", "everysec"), oneOf(r, time.Millisecond, 10*time.Millisecond, 50*time.Millisecond)
	p.think, p.clients = oneOf(r, time.Millisecond, 5*time.Millisecond, 50*time.Millisecond), 2+r.IntN(4)
	if p.fsync == "everysec" { // for longer than a second
		p.think, p.slowDisk = oneOf(r, 20*time.Millisecond, 100*time.Millisecond), time.Millisecond
	}
	p.turns = 100 * time.Millisecond // so that processes end in each of them
	p.set("appendfsync", p.fsync)
	if r.IntN(2) == 0 { // the file is rewritten again and again
		p.set("auto-aof-rewrite-min-size", "100")
		p.set("auto-aof-rewrite-percentage", "1")
	}
	for i := range p.keys {
		k := &p.keys[i]
		*k = key{name: k.name}
		if text := oneOf(r, "", "40/1h", "40/1h,algo=window", "30/1h,algo=log", "60/1h,burst=20"); text != "" {
			k.text, k.limit = limitOf(text)
		} else {
			k.burst = [3]int64{20, 20, 3600}
		}
	}
	kinds := []string{"power", "power", "power", "kill"}
	if r.IntN(2) == 0 { // after which little else happens, as clients are refused meanwhile
		kinds = append(kinds, "bad sync", "full disk")
	}
	full, hands := p.chance("kills with a full disk"), p.chance("hand-overs in worlds about crashes")
	p.faultsFrom(r, 2+r.IntN(5), func(f *fault) {
		f.kind = oneOf(r, kinds...)
		if f.kind == "power" || f.kind == "kill" {
			f.long = time.Duration(r.Int64N(int64(50 * time.Millisecond)))
		}
		if (f.kind == "kill" || f.kind == "full disk") && p.fsync == "always" && full.IntN(4) > 0 {
			f.kind = killWithFullDisk
		}
		if hands.IntN(6) == 0 {
			f.kind, f.long = handOver, time.Duration(hands.Int64N(int64(2*time.Second)))
		}
	})
}

// drawUnits: processes end again and again while calls change many keys together. Little else happens.
func drawUnits(p *plan, r *rand.Rand) {
	drawCrashes(p, r)
	p.clients, p.calls = 1, 20+r.IntN(60)
	p.think = oneOf(r, time.Millisecond, 20*time.Millisecond)
	p.slowDisk = oneOf(r, time.Millisecond, 10*time.Millisecond, 50*time.Millisecond)
	p.scenes = nil
	for _, s := range scenes {
		if s.name == "whole" || s.name == "upkeep" && r.IntN(2) == 0 {
			p.scenes = append(p.scenes, s)
		}
	}
}

// drawAhead: machines take ahead of many calls for few keys, to the last of what limits have. Where clients call all at once, units that
// are older meet a limit that is full again.
func drawAhead(p *plan, r *rand.Rand) {
	p.set("store-ahead", oneOf(r, "20", "100", "500"))
	p.clients, p.pipeline, p.think = 3+r.IntN(4), oneOf(r, 1, 1, 4), oneOf(r, time.Millisecond, 5*time.Millisecond, 20*time.Millisecond)
	p.calls, p.bursts = 100+r.IntN(150), oneOf(r, 0, 60*time.Millisecond, 300*time.Millisecond)
	p.keys = p.keys[:min(len(p.keys), 1+r.IntN(2))]
	for i := range p.keys {
		k := &p.keys[i]
		*k = key{name: k.name}
		text := oneOf(r, "", "", "30/1s",
			"100/1s", "100/5s,burst=50", "60/1s,algo=window", "60/1s,algo=slide", "90/1s,algo=slide,buckets=3",
			"40/1s,algo=window,align=clock", "100/2s 90/1s,algo=window", "1000/1h,algo=window 60/1s", "1000/2s 40/1s")
		if text == "" {
			k.burst = [3]int64{20 + r.Int64N(40), 40, 1}
			continue
		}
		k.asksFor(text)
	}
	if storms := p.chance("storms"); storms.IntN(3) == 0 { // so that a bucket is full again while units of it are held
		p.set("store-ahead", "500")
		p.storms, p.bursts, p.think = true, 1400*time.Millisecond, 300*time.Millisecond
		p.keys = []key{{name: p.keys[0].name}}
		p.keys[0].asksFor(oneOf(storms, "30/1s", "40/1s", "60/1s", "40/1s,algo=window,align=clock", "1000/1h,algo=window 30/1s"))
	}
	p.fewFaults(r)
}

// drawLines: many wait for few keys.
func drawLines(p *plan, r *rand.Rand) {
	p.clients, p.pipeline, p.think = 3+r.IntN(4), 1, oneOf(r, time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)
	p.calls = min(p.calls, 60)
	p.keys = p.keys[:min(len(p.keys), 1+r.IntN(2))]
	for i := range p.keys {
		k := &p.keys[i]
		*k = key{name: k.name, waits: true}
		k.text, k.limit = limitOf(oneOf(r, "5/1s,burst=1", "20/1s,burst=3", "3/1s,burst=1", "1/100ms"))
		if slow := p.chance("slow lines"); slow.IntN(3) == 0 { // where a pause of the engine costs less than a call
			k.text, k.limit = limitOf("1/2s")
		}
	}
	if p.fewFaults(r); p.engine != noEngine && r.IntN(2) == 0 { // who waits comes to the end of that while the engine does not answer
		p.faultsFrom(r, 3+r.IntN(5), func(f *fault) {
			f.kind, f.long = "engine paused", 50*time.Millisecond+time.Duration(r.Int64N(int64(350*time.Millisecond)))
		})
	}
}

// drawLeases: many hold and release few leases. In half of these worlds nothing fails but connections, and processes that are told to end.
func drawLeases(p *plan, r *rand.Rand) {
	p.clients, p.pipeline, p.think = 3+r.IntN(4), oneOf(r, 1, 1, 4), oneOf(r, time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)
	p.calls = min(p.calls, 80)
	p.keys = p.keys[:min(len(p.keys), 1+r.IntN(2))]
	for i := range p.keys {
		k := &p.keys[i]
		*k = key{name: k.name, held: true}
		k.text, k.limit = limitOf(oneOf(r, "1/1m,algo=conc", "3/5s,algo=conc", "2/1h,algo=conc"))
		if short := p.chance("short leases"); short.IntN(2) == 0 { // else a call is denied at once that would wait, as none ends in time
			k.text, k.limit = limitOf(oneOf(short, "1/600ms,algo=conc", "2/900ms,algo=conc"))
		}
	}
	if p.fewFaults(r); r.IntN(2) == 0 {
		if p.engine != noEngine {
			p.binds = true                              // so that all is back at the end
			p.think = max(p.think, 20*time.Millisecond) // else clients have called all that they will before a process has ended
		}
		cuts := p.chance("cuts").IntN(2) == 0
		p.faultsFrom(r, 1+r.IntN(5), func(f *fault) {
			if f.kind = oneOf(r, "cut", "cut", "stop"); p.engine != noEngine && (f.kind == "stop" || !cuts) {
				f.kind = stopWithoutScripts
			}
		})
	}
}

// drawConfigurations: policies change all the time, in memory while long scripts run, and on an engine while processes start without it.
func drawConfigurations(p *plan, r *rand.Rand) {
	p.think = oneOf(r, time.Millisecond, 10*time.Millisecond)
	if p.engine == noEngine {
		p.set("policies", p.folder+"/"+policiesFile)
		p.set("lua-time-limit", "1")
		p.stalls, p.turns = true, 30*time.Millisecond
		return
	}
	p.settings = slices.DeleteFunc(p.settings, func(s [2]string) bool { return s[0] == "policies" })
	p.think = 100 * time.Millisecond
	p.faultsFrom(r, 1+r.IntN(3), func(f *fault) { f.kind = "killed without the engine" })
}

// fewFaults leaves two of the faults at most.
func (p *plan) fewFaults(r *rand.Rand) { p.faults = p.faults[:min(len(p.faults), r.IntN(3))] }

// faultsFrom draws other faults, each as is says.
func (p *plan) faultsFrom(r *rand.Rand, n int, is func(f *fault)) {
	p.faults = nil
	for range n {
		f := fault{at: time.Duration(r.Int64N(int64(p.spread()) + 1)), long: time.Duration(r.Int64N(int64(2 * time.Second)))}
		is(&f)
		p.faults = append(p.faults, f)
	}
	slices.SortStableFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
}
