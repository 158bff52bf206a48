package stats

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"celld/resp/command"
	"celld/resp/command/spec"
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

// Read returns copies of the events.
func (m *Latency) Read() (events []LatencyEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		events = append(events, LatencyEvent{e.Name, slices.Clone(e.Spikes), e.MostMs})
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

// Rows are LATENCY's subcommands. table has the commands of HISTOGRAM.
func (m *Latency) Rows(table func() *command.Table) []*command.Row {
	return []*command.Row{
		{Name: "latest", Arity: 2, Flags: spec.Loading | spec.Admin | spec.NoScript, Summary: "Returns the latest latency samples of all events.", Since: "2.8.13", Group: "server", Run: m.latest},
		{Name: "history", Arity: 3, Flags: spec.Loading | spec.Admin | spec.NoScript, Usage: "event", Summary: "Returns an event's samples: the time of each, and its milliseconds.", Since: "2.8.13", Group: "server", Run: m.history},
		{Name: "reset", Arity: -2, Most: spec.ShortList, Flags: spec.Loading | spec.Admin | spec.NoScript, Usage: "[event ...]", Summary: "Forgets the samples of some events, or of all.", Since: "2.8.13", Group: "server", Run: m.reset},
		{Name: "histogram", Arity: -2, Most: spec.ShortList, Flags: spec.Loading | spec.Admin | spec.NoScript, Usage: "[command ...]", Summary: "Returns how long the calls of commands took, as a histogram.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: func(c *command.Call) { histogram(table(), c) }},
	}
}

func (m *Latency) latest(c *command.Call) {
	events := m.Read()
	c.Array(len(events))
	for i := range events {
		e := &events[i]
		c.Array(4)
		c.String(e.Name)
		c.Int(e.last().UnixS)
		c.Int(e.last().Ms)
		c.Int(e.MostMs)
	}
}

func (m *Latency) history(c *command.Call) {
	var spikes []Spike
	for _, e := range m.Read() {
		if e.Name == string(c.Args[2]) {
			spikes = e.Spikes
		}
	}
	c.Array(len(spikes))
	for _, sp := range spikes {
		c.Array(2)
		c.Int(sp.UnixS)
		c.Int(sp.Ms)
	}
}

// reset accepts names in any case. LATENCY's other subcommands do not, as in Redis.
func (m *Latency) reset(c *command.Call) {
	names := c.Args[2:]
	c.Int(int64(m.Remove(func(event string) bool {
		return len(names) == 0 || slices.ContainsFunc(names, func(name []byte) bool { return strings.EqualFold(event, string(name)) })
	})))
}

func histogram(table *command.Table, c *command.Call) {
	var rows []*command.Row
	if len(c.Args) == 2 {
		table.Each(func(row *command.Row) { rows = append(rows, row) })
	}
	for _, name := range c.Args[2:] {
		if row := table.FindFull(name); row != nil {
			rows = append(append(rows, row), row.Sub...)
		}
	}
	read := make(map[*command.Row]*TimesRead, len(rows))
	rows = slices.DeleteFunc(rows, func(row *command.Row) bool {
		if _, before := read[row]; !before { // a copy takes 24 KB and 8 µs
			_, _, read[row] = Of(row).Read()
		}
		return read[row] == nil
	})
	c.Map(len(rows))
	for _, row := range rows {
		c.String(row.FullName())
		replyTimes(c, read[row])
	}
}

func replyTimes(c *command.Call, r *TimesRead) {
	var steps [][2]int64
	r.Doublings(func(us, calls int64) { steps = append(steps, [2]int64{us, calls}) })
	c.Map(2)
	c.Field("calls", r.Calls)
	c.String("histogram_usec")
	c.Map(len(steps))
	for _, step := range steps {
		c.Int(step[0])
		c.Int(step[1])
	}
}
