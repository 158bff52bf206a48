package stats

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// mostSpikes is how many spikes an event keeps, one a second at most, as in Redis.
const mostSpikes = 160

// The events.
const (
	CommandEvent     = "command"
	FastCommandEvent = "fast-command" // or the mean time of a batch of fast commands
	FsyncEvent       = "aof-fsync-always"
)

// Latency keeps the spikes of events, for LATENCY. It needs no bound, as there are only three events. Any goroutine may use it.
type Latency struct {
	thresholdMs func() int64
	wallNS      func() int64

	mu     sync.Mutex
	events []*LatencyEvent // by name
}

// LatencyEvent is what was noted under one name.
type LatencyEvent struct {
	Name   string
	Spikes []Spike // oldest first
	MostMs int64   // the longest since the last reset, spikes that are no longer kept included
}

// Spike is the longest time within one second.
type Spike struct{ UnixS, Ms int64 }

func (e *LatencyEvent) last() Spike { return e.Spikes[len(e.Spikes)-1] }

// NewLatency returns a Latency of what takes so many milliseconds; 0: of nothing. wallNS is the wall clock.
func NewLatency(thresholdMs, wallNS func() int64) *Latency {
	return &Latency{thresholdMs: thresholdMs, wallNS: wallNS}
}

// Note notes the time of an event that ends now, if that is a spike.
func (m *Latency) Note(event string, tookNS int64) {
	if threshold := m.thresholdMs(); threshold != 0 && tookNS/1e6 >= threshold {
		m.add(event, Spike{m.wallNS() / int64(time.Second), tookNS / 1e6})
	}
}

func (m *Latency) add(event string, now Spike) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := slices.BinarySearchFunc(m.events, event, func(e *LatencyEvent, name string) int { return cmp.Compare(e.Name, name) })
	if !found {
		m.events = slices.Insert(m.events, at, &LatencyEvent{Name: event})
	}
	e := m.events[at]
	e.MostMs = max(e.MostMs, now.Ms)
	if len(e.Spikes) > 0 && e.last().UnixS == now.UnixS {
		last := &e.Spikes[len(e.Spikes)-1]
		last.Ms = max(last.Ms, now.Ms)
		return
	}
	e.Spikes = append(e.Spikes, now)
	if len(e.Spikes) > mostSpikes {
		e.Spikes = slices.Delete(e.Spikes, 0, 1)
	}
}

// Read returns copies of the events that keep selects.
func (m *Latency) Read(keep func(name string) bool) (events []LatencyEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if keep(e.Name) {
			events = append(events, LatencyEvent{e.Name, slices.Clone(e.Spikes), e.MostMs})
		}
	}
	return events
}

// Remove deletes the events that forget selects, and returns how many.
func (m *Latency) Remove(forget func(name string) bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.events)
	m.events = slices.DeleteFunc(m.events, func(e *LatencyEvent) bool { return forget(e.Name) })
	return before - len(m.events)
}
