package resp

import (
	"fmt"
	"slices"
	"strings"
)

func latencyRows() []*command {
	return []*command{
		{name: "latest", arity: 2, flags: loading | admin | noScript, summary: "Returns the latest latency samples of all events.", since: "2.8.13", group: "server", run: cmdLatencyLatest},
		{name: "history", arity: 3, flags: loading | admin | noScript, usage: "event", summary: "Returns an event's samples: when, and the milliseconds.", since: "2.8.13", group: "server", run: cmdLatencyHistory},
		{name: "reset", arity: -2, most: shortList, flags: loading | admin | noScript, usage: "[event ...]", summary: "Forgets the samples of some events, or of all.", since: "2.8.13", group: "server", run: cmdLatencyReset},
		{name: "doctor", arity: 2, flags: loading | admin | noScript, summary: "Says what was slow, and what to look at.", since: "2.8.13", group: "server", run: cmdLatencyDoctor},
		{name: "histogram", arity: -2, most: shortList, flags: loading | admin | noScript, usage: "[command ...]", summary: "Returns how long the calls of commands took, as a histogram.", since: "7.0.0", group: "server", cost: "O(N) where N is the number of commands", run: cmdLatencyHistogram},
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
	var rows []*command
	if len(args) == 2 {
		s.srv.commands.each(func(row *command) { rows = append(rows, row) })
	}
	for _, name := range args[2:] {
		if row := s.srv.commands.findFull(name); row != nil {
			rows = append(append(rows, row), row.sub...)
		}
	}
	read := make(map[*command]*timesRead, len(rows))
	rows = slices.DeleteFunc(rows, func(row *command) bool {
		_, _, read[row] = row.stats.read()
		return read[row] == nil
	})
	s.replyMap(len(rows))
	for _, row := range rows {
		s.replyString(row.fullName())
		s.replyTimes(read[row])
	}
}

func (s *Session) replyTimes(r *timesRead) {
	var steps [][2]int64
	r.doublings(func(us, calls int64) { steps = append(steps, [2]int64{us, calls}) })
	s.replyMap(2)
	s.replyField("calls", r.calls)
	s.replyString("histogram_usec")
	s.replyMap(len(steps))
	for _, step := range steps {
		s.replyInt(step[0])
		s.replyInt(step[1])
	}
}
