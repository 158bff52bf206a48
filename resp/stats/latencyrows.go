package stats

import (
	"slices"
	"strings"

	"celld/resp/command"
	"celld/resp/command/spec"
)

// Rows are LATENCY's subcommands. table has the commands of HISTOGRAM.
func (m *Latency) Rows(table func() *command.Table) []*command.Row {
	return []*command.Row{
		{Name: "latest", Arity: 2, Flags: spec.Loading | spec.Admin | spec.NoScript, Summary: "Returns the latest latency samples of all events.", Since: "2.8.13", Group: "server", Run: m.latest},
		{Name: "history", Arity: 3, Flags: spec.Loading | spec.Admin | spec.NoScript, Usage: "event", Summary: "Returns an event's samples: the time of each, and its milliseconds.", Since: "2.8.13", Group: "server", Run: m.history},
		{Name: "reset", Arity: -2, Most: spec.ShortList, Flags: spec.Loading | spec.Admin | spec.NoScript, Usage: "[event ...]", Summary: "Forgets the samples of some events, or of all.", Since: "2.8.13", Group: "server", Run: m.reset},
		{Name: "histogram", Arity: -2, Most: spec.ShortList, Flags: spec.Loading | spec.Admin | spec.NoScript, Usage: "[command ...]", Summary: "Returns how long the calls of commands took, as a histogram.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: func(c *command.Call) { histogram(table(), c) }},
	}
}

func anyEvent(string) bool { return true }

func (m *Latency) latest(c *command.Call) {
	events := m.Read(anyEvent)
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
	for _, e := range m.Read(func(event string) bool { return event == string(c.Args[2]) }) {
		spikes = e.Spikes
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
