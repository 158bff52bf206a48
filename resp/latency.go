package resp

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// mostSpikes is how many seconds with a spike an event keeps, as in Redis.
const mostSpikes = 160

// The events of the latency monitor.
const (
	eventCommand     = "command"
	eventFastCommand = "fast-command" // also the mean of a batch of them
	eventFsync       = "aof-fsync-always"
)

func latencyEventOf(row *command) string {
	if row.flags&fast != 0 {
		return eventFastCommand
	}
	return eventCommand
}

// latencyMonitor keeps what took at least latency-monitor-threshold. It has the few events above, so it needs no bound.
type latencyMonitor struct {
	mu     sync.Mutex
	events []*latencyEvent // by name
}

type latencyEvent struct {
	name   string
	spikes []spike // oldest first
	mostMs int64   // since the last reset, also of spikes that are no longer kept
}

// spike is the longest time of a second.
type spike struct{ unixS, ms int64 }

func (e *latencyEvent) last() spike { return e.spikes[len(e.spikes)-1] }

// slow notes what took so long, if that is a spike.
func (srv *Server) slow(event string, nowNS, tookNS int64) {
	if threshold := srv.cfg.latencyThreshold.Get(); threshold == 0 || tookNS/1e6 < threshold {
		return
	}
	srv.latency.add(event, spike{srv.store.WallNS(nowNS) / int64(time.Second), tookNS / 1e6})
}

func (m *latencyMonitor) add(event string, now spike) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := slices.BinarySearchFunc(m.events, event, func(e *latencyEvent, name string) int { return cmp.Compare(e.name, name) })
	if !found {
		m.events = slices.Insert(m.events, at, &latencyEvent{name: event})
	}
	e := m.events[at]
	e.mostMs = max(e.mostMs, now.ms)
	if len(e.spikes) > 0 && e.last().unixS == now.unixS {
		last := &e.spikes[len(e.spikes)-1]
		last.ms = max(last.ms, now.ms)
		return
	}
	e.spikes = append(e.spikes, now)
	if len(e.spikes) > mostSpikes {
		e.spikes = slices.Delete(e.spikes, 0, 1)
	}
}

// read returns a copy of the events that keep accepts.
func (m *latencyMonitor) read(keep func(name string) bool) (events []latencyEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if keep(e.name) {
			events = append(events, latencyEvent{e.name, slices.Clone(e.spikes), e.mostMs})
		}
	}
	return events
}

// remove forgets the events that forget accepts, and returns how many those were.
func (m *latencyMonitor) remove(forget func(name string) bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.events)
	m.events = slices.DeleteFunc(m.events, func(e *latencyEvent) bool { return forget(e.name) })
	return before - len(m.events)
}
