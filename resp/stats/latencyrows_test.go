package stats

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/calltest"
	"celld/store/memory"
)

// LATENCY's answers.
func TestLatencyRows(t *testing.T) {
	threshold, wallNS := int64(0), int64(0)
	var m *Latency
	run := func(*command.Call) {}
	table := command.NewTable([]*command.Row{
		{Name: "get", Run: run}, {Name: "ping", Run: run},
		{Name: "config", Run: run, Sub: []*command.Row{{Name: "set", Run: run}, {Name: "get", Run: run}}},
	}, func() any { return &Command{} })
	m = NewLatency(func() int64 { return threshold }, func() int64 { return wallNS })
	h := calltest.New(memory.Options{}, &command.Row{Name: "latency", Sub: m.Rows(func() *command.Table { return table })})
	want := func(line, reply string) {
		t.Helper()
		if got := h.Do(append([]string{"LATENCY"}, strings.Fields(line)...)...); got != reply {
			t.Errorf("%s: %q, want %q", line, got, reply)
		}
	}
	threshold = 5
	want("LATEST", "*0\r\n")
	want("HISTORY command", "*0\r\n")
	s := h.NowNS / 1e9
	for _, spike := range [][2]int64{{86400, 30}, {50, 5}, {10, 10}} { // so long ago, and how long
		wallNS = h.NowNS - spike[0]*1e9
		m.Note(CommandEvent, spike[1]*1e6)
	}
	wallNS = h.NowNS - 60e9
	m.Note(FsyncEvent, 7e6)
	wallNS = h.NowNS - 3600e9
	m.Note(FastCommandEvent, 8e6)
	want("LATEST", fmt.Sprintf("*3\r\n*4\r\n$16\r\naof-fsync-always\r\n:%d\r\n:7\r\n:7\r\n*4\r\n$7\r\ncommand\r\n:%d\r\n:10\r\n:30\r\n*4\r\n$12\r\nfast-command\r\n:%d\r\n:8\r\n:8\r\n", s-60, s-10, s-3600))
	want("HISTORY command", fmt.Sprintf("*3\r\n*2\r\n:%d\r\n:30\r\n*2\r\n:%d\r\n:5\r\n*2\r\n:%d\r\n:10\r\n", s-86400, s-50, s-10))
	want("HISTORY COMMAND", "*0\r\n")
	want("RESET none", ":0\r\n")
	want("RESET COMMAND none", ":1\r\n")
	want("RESET", ":2\r\n")
	want("LATEST", "*0\r\n")

	want("HISTOGRAM", "*0\r\n")
	var b Batch
	b.CountSlow(table.FindFull([]byte("get")), 1000, false, 0)
	b.CountSlow(table.FindFull([]byte("get")), 100_000, false, 0)
	b.CountSlow(table.FindFull([]byte("config|set")), 500, false, 0)
	get, set := "$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*4\r\n:1\r\n:1\r\n:132\r\n:2\r\n",
		"$10\r\nconfig|set\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:1\r\n:1\r\n"
	want("HISTOGRAM", "*4\r\n"+set+get)
	want("HISTOGRAM ping", "*0\r\n")
	want("HISTOGRAM config none get", "*4\r\n"+set+get)
	want("HISTOGRAM config|set", "*2\r\n"+set)
	want("HISTOGRAM get get", "*4\r\n"+get+get)
}
