// Package latency keeps what took long and when, for LATENCY.
//
//	m := latency.New(threshold, wallNS)
//	m.Note(latency.Fsync, tookNS)  // kept if it took the threshold or longer
//	rows := latency.Rows(m, table) // LATEST, HISTORY, RESET, HISTOGRAM
//
// It needs no limit, as there are only three events.
package latency

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
	Command     = "command"
	FastCommand = "fast-command" // or the mean time of a batch of fast commands
	Fsync       = "aof-fsync-always"
)

// Monitor keeps the spikes of events. Any goroutine may use it.
type Monitor struct {
	thresholdMs func() int64
	wallNS      func() int64

	mu     sync.Mutex
	events []*Event // by name
}

// Event is what was noted under one name.
type Event struct {
	Name   string
	Spikes []Spike // oldest first
	MostMs int64   // the longest since the last reset, spikes that are no longer kept included
}

// Spike is the longest time within one second.
type Spike struct{ UnixS, Ms int64 }

func (e *Event) last() Spike { return e.Spikes[len(e.Spikes)-1] }

// New returns a Monitor of what takes so many milliseconds; 0: of nothing. wallNS is the wall clock.
func New(thresholdMs, wallNS func() int64) *Monitor {
	return &Monitor{thresholdMs: thresholdMs, wallNS: wallNS}
}

// Note notes the time of an event that ends now, if that is a spike.
func (m *Monitor) Note(event string, tookNS int64) {
	if threshold := m.thresholdMs(); threshold != 0 && tookNS/1e6 >= threshold {
		m.add(event, Spike{m.wallNS() / int64(time.Second), tookNS / 1e6})
	}
}

func (m *Monitor) add(event string, now Spike) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := slices.BinarySearchFunc(m.events, event, func(e *Event, name string) int { return cmp.Compare(e.Name, name) })
	if !found {
		m.events = slices.Insert(m.events, at, &Event{Name: event})
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
func (m *Monitor) Read(keep func(name string) bool) (events []Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if keep(e.Name) {
			events = append(events, Event{e.Name, slices.Clone(e.Spikes), e.MostMs})
		}
	}
	return events
}

// Remove deletes the events that forget selects, and returns how many.
func (m *Monitor) Remove(forget func(name string) bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.events)
	m.events = slices.DeleteFunc(m.events, func(e *Event) bool { return forget(e.Name) })
	return before - len(m.events)
}
