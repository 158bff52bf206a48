package resp

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"celld/resp/command"
)

// mostSpikes is how many spikes an event keeps, one a second at most, as in Redis.
const mostSpikes = 160

// The events of the latency monitor.
const (
	eventCommand     = "command"
	eventFastCommand = "fast-command" // or the mean time of a batch of fast commands
	eventFsync       = "aof-fsync-always"
)

func latencyEventOf(row *command.Row) string {
	if row.Flags&command.Fast != 0 {
		return eventFastCommand
	}
	return eventCommand
}

// latencyMonitor keeps what took at least latency-monitor-threshold ms. It needs no limit, as there are only the events above.
type latencyMonitor struct {
	mu     sync.Mutex
	events []*latencyEvent // by name
}

type latencyEvent struct {
	name   string
	spikes []spike // oldest first
	mostMs int64   // the longest since the last reset, spikes that are no longer kept included
}

// spike is the longest time within one second.
type spike struct{ unixS, ms int64 }

func (e *latencyEvent) last() spike { return e.spikes[len(e.spikes)-1] }

// slow notes an event's time, if that is a spike.
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

// read returns copies of the events that keep selects.
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

// remove deletes the events that forget selects, and returns how many.
func (m *latencyMonitor) remove(forget func(name string) bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.events)
	m.events = slices.DeleteFunc(m.events, func(e *latencyEvent) bool { return forget(e.name) })
	return before - len(m.events)
}
