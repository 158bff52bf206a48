package link

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"celld/store"
)

// watchInterval is how often watch asks the engine whether it is there. Calls find out by themselves. The watch is for INFO and celld
// ready, and connects an idle celld anew.
const watchInterval = time.Second

// watch asks whether the engine is there, and checks nodes that were connected to, until the Link is closed. It returns true if another
// client should be made in place of this one.
func (l *Link) watch(client rueidis.Client) (again bool) {
	said := false // that it is away: if calls have found out, that is logged already
	away := 0     // how many looks in a row have found that
	for ok := true; ok; ok = l.pause(watchInterval) {
		why := l.look(client)
		if away++; why == "" {
			away = 0
		}
		if l.address.Master != "" && away == mostLooks {
			l.client.Store(nil)
			client.Close()
			return true
		}
		switch {
		case why != "" && !said && l.Down() == nil:
			l.log.Warn("the engine is away", "store", l.name, "why", why)
			said = true
		case why == "" && said:
			l.log.Info("the engine is back", "store", l.name)
			said = false
		}
		if why == "" && l.cluster.Load() {
			l.lookAtHashSlots(client)
			l.coverage.noteCalls(l.Down())
			l.probeRest()
		}
		if dialed := l.dialed.drain(); len(dialed) > 0 {
			there := client.Nodes()
			l.nodes.keep(there)
			for _, addr := range dialed {
				if node := there[addr]; node != nil {
					l.check(addr, node)
				}
			}
		}
	}
	client.Close() // once more: it may have come after Close
	return false
}

// look asks the engine whether it is there and takes calls, and notes why not. In a Cluster some nodes may, and others not: see coverage.
func (l *Link) look(client rueidis.Client) (why string) {
	if err := l.ping(client); err != nil {
		why = l.reason(err)
	} else if !l.cluster.Load() {
		why = l.probe()
	}
	if why == "" {
		l.away.Store(nil)
	} else {
		l.setAway(why)
	}
	return why
}

// probe returns why calls are not decided; "" where they are.
func (l *Link) probe() string {
	ended := make(chan error, 1)
	probe := l.pipelines.all[0].breaker.newProbe(func(err error) { ended <- err })
	probe.Deadline = time.Now().Add(max(l.options.Timeout, watchInterval))
	l.Send(probe)
	switch err := <-ended; {
	case err == nil:
		return ""
	case errors.Is(err, store.ErrFull):
		return "the engine has no memory left"
	default:
		return l.reason(err)
	}
}

// ping returns nil when any node answers.
func (l *Link) ping(client rueidis.Client) error {
	ask := func(c rueidis.Client) error {
		ctx, cancel := context.WithTimeout(context.Background(), max(l.options.Timeout, watchInterval))
		defer cancel()
		return c.Do(ctx, c.B().Ping().Build()).Error()
	}
	err := ask(client)
	if err == nil || !l.cluster.Load() {
		return err
	}
	nodes := client.Nodes()
	answers := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { answers <- ask(node) }()
	}
	for range nodes {
		if <-answers == nil {
			return nil
		}
	}
	return err
}

// dialed are the nodes to which Dial has connected since the last look.
type dialed struct {
	mu    sync.Mutex
	addrs map[string]bool
}

// mostDialed bounds what a flapping Cluster adds between two looks.
const mostDialed = 1000

func (d *dialed) add(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.addrs == nil {
		d.addrs = make(map[string]bool)
	}
	if len(d.addrs) < mostDialed {
		d.addrs[addr] = true
	}
}

func (d *dialed) drain() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	addrs := slices.Collect(maps.Keys(d.addrs))
	clear(d.addrs)
	return addrs
}
