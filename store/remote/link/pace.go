package link

import (
	"maps"
	"sync"
	"time"
)

// While the master that Sentinels name is away, rueidis asks them for another: each time by all Sentinels in turn, and each connection
// that it closes then begins to ask as well, in a goroutine of its own. So an engine that was away for 10 s left 1,600 goroutines, which
// opened 800 connections a second and took a third of a core. Two things bound that: pace, and mostLooks.

// paceInterval is how long nobody connects to a node after that has failed, or after a connection that was closed as soon.
const paceInterval = 250 * time.Millisecond

// mostLooks is how many looks, one a second, may find the engine away before the client is closed, and its goroutines with it.
const mostLooks = 30

// pace knows when connections to nodes have failed.
type pace struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (p *pace) failed(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.last, func(_ string, at time.Time) bool { return now.Sub(at) > paceInterval })
	if p.last == nil {
		p.last = map[string]time.Time{}
	}
	p.last[to] = now
}

// pause is how long to wait before the next connection to a node.
func (p *pace) pause(to string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.last[to]; ok {
		return max(0, time.Until(at.Add(paceInterval)))
	}
	return 0
}
