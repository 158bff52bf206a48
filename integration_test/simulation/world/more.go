package main

import "time"

// drawMore draws what few worlds have, from a source of its own.
func (p *plan) drawMore() {
	switch r := p.chance("more"); {
	case p.engine != noEngine:
		p.timeout, p.deletes = oneOf(r, 500*time.Millisecond, 500*time.Millisecond, 3*time.Second), r.IntN(2) == 0
		p.set("store-timeout", p.timeout.String())
		p.ahead = oneOf(r, 0, 0, 5*time.Second, -5*time.Second)
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

// engineForgets reports whether a fault may make the engine forget what it was told.
func (p *plan) engineForgets() bool {
	for _, f := range p.faults {
		switch f.kind {
		case "engine killed", "engine fails over", "engine evicts", "engine isolated", "engine flushed":
			return true
		}
	}
	return false
}
