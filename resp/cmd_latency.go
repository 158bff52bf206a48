package resp

import (
	"fmt"
	"slices"
	"strings"

	"celld/resp/command"
	"celld/resp/stats"
)

func latencyRows() []*command.Row {
	return []*command.Row{
		{Name: "latest", Arity: 2, Flags: command.Loading | command.Admin | command.NoScript, Summary: "Returns the latest latency samples of all events.", Since: "2.8.13", Group: "server", Run: onSession(cmdLatencyLatest)},
		{Name: "history", Arity: 3, Flags: command.Loading | command.Admin | command.NoScript, Usage: "event", Summary: "Returns an event's samples: when, and the milliseconds.", Since: "2.8.13", Group: "server", Run: onSession(cmdLatencyHistory)},
		{Name: "reset", Arity: -2, Most: command.ShortList, Flags: command.Loading | command.Admin | command.NoScript, Usage: "[event ...]", Summary: "Forgets the samples of some events, or of all.", Since: "2.8.13", Group: "server", Run: onSession(cmdLatencyReset)},
		{Name: "doctor", Arity: 2, Flags: command.Loading | command.Admin | command.NoScript, Summary: "Says what was slow, and what to look at.", Since: "2.8.13", Group: "server", Run: onSession(cmdLatencyDoctor)},
		{Name: "histogram", Arity: -2, Most: command.ShortList, Flags: command.Loading | command.Admin | command.NoScript, Usage: "[command ...]", Summary: "Returns how long the calls of commands took, as a histogram.", Since: "7.0.0", Group: "server", Cost: "O(N) where N is the number of commands", Run: onSession(cmdLatencyHistogram)},
	}
}

func anyEvent(string) bool { return true }

func cmdLatencyLatest(s *Session, _ [][]byte) {
	events := s.srv.latency.read(anyEvent)
	s.replyArray(len(events))
	for i := range events {
		e := &events[i]
		s.replyArray(4)
		s.replyString(e.name)
		s.replyInt(e.last().unixS)
		s.replyInt(e.last().ms)
		s.replyInt(e.mostMs)
	}
}

func cmdLatencyHistory(s *Session, args [][]byte) {
	var spikes []spike
	for _, e := range s.srv.latency.read(func(event string) bool { return event == string(args[2]) }) {
		spikes = e.spikes
	}
	s.replyArray(len(spikes))
	for _, sp := range spikes {
		s.replyArray(2)
		s.replyInt(sp.unixS)
		s.replyInt(sp.ms)
	}
}

// cmdLatencyReset accepts names in any case. LATENCY's other subcommands do not, as in Redis.
func cmdLatencyReset(s *Session, args [][]byte) {
	names := args[2:]
	s.replyInt(int64(s.srv.latency.remove(func(event string) bool {
		return len(names) == 0 || slices.ContainsFunc(names, func(name []byte) bool { return strings.EqualFold(event, string(name)) })
	})))
}

func ago(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 86400:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", seconds/86400)
}

// latencyAdvice says what LATENCY DOCTOR advises for each event.
var latencyAdvice = map[string]string{
	eventCommand:     "SLOWLOG GET names the commands. KEYS, SCAN with a large COUNT and DEL of many keys hold up their event loop.",
	eventFastCommand: "a command that takes microseconds has waited: for a CPU, which others on this machine have, or for memory that was swapped out.",
	eventFsync:       "the disk is slow to write. --appendfsync everysec does not wait for it, and a crash may then forget a second.",
}

func cmdLatencyDoctor(s *Session, _ [][]byte) {
	events := s.srv.latency.read(anyEvent)
	threshold := s.srv.cfg.latencyThreshold.Get()
	var b strings.Builder
	switch {
	case threshold == 0 && len(events) == 0:
		b.WriteString("Nothing is watched: CONFIG SET latency-monitor-threshold to the milliseconds that are too long.\n")
	case len(events) == 0:
		fmt.Fprintf(&b, "Nothing took %d ms or longer.\n", threshold)
	}
	for i := range events {
		e := &events[i]
		sum := int64(0)
		for _, sp := range e.spikes {
			sum += sp.ms
		}
		fmt.Fprintf(&b, "%s: in %d different seconds, %d ms on average, %d ms at most, last %s ago.\n  %s\n",
			e.name, len(e.spikes), sum/int64(len(e.spikes)), e.mostMs, ago(s.wallNS()/1e9-e.last().unixS), latencyAdvice[e.name])
	}
	s.replyText(b.String())
}

func cmdLatencyHistogram(s *Session, args [][]byte) {
	var rows []*command.Row
	if len(args) == 2 {
		s.srv.commands.Each(func(row *command.Row) { rows = append(rows, row) })
	}
	for _, name := range args[2:] {
		if row := s.srv.commands.FindFull(name); row != nil {
			rows = append(append(rows, row), row.Sub...)
		}
	}
	read := make(map[*command.Row]*stats.TimesRead, len(rows))
	rows = slices.DeleteFunc(rows, func(row *command.Row) bool {
		_, _, read[row] = stats.Of(row).Read()
		return read[row] == nil
	})
	s.replyMap(len(rows))
	for _, row := range rows {
		s.replyString(row.FullName())
		s.replyTimes(read[row])
	}
}

func (s *Session) replyTimes(r *stats.TimesRead) {
	var steps [][2]int64
	r.Doublings(func(us, calls int64) { steps = append(steps, [2]int64{us, calls}) })
	s.replyMap(2)
	s.replyField("calls", r.Calls)
	s.replyString("histogram_usec")
	s.replyMap(len(steps))
	for _, step := range steps {
		s.replyInt(step[0])
		s.replyInt(step[1])
	}
}
