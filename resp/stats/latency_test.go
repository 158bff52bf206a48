package stats

import (
	"slices"
	"testing"
)

// The longest time of a second is kept, of what takes the threshold or longer.
func TestLatency(t *testing.T) {
	threshold, wallNS := int64(10), int64(0)
	m := NewLatency(func() int64 { return threshold }, func() int64 { return wallNS })
	note := func(event string, s, ms int64) {
		wallNS = (100+s)*1e9 + 5e8
		m.Note(event, ms*1e6+999_999)
	}
	note(CommandEvent, 1, 9)
	if len(m.Read()) > 0 {
		t.Error("what is below the threshold is kept")
	}
	note(FsyncEvent, 1, 10)
	note(CommandEvent, 1, 20)
	note(CommandEvent, 1, 50)
	note(CommandEvent, 1, 30)
	note(CommandEvent, 2, 12)
	threshold = 0
	note(CommandEvent, 3, 1000)
	events := m.Read()
	if len(events) != 2 || events[0].Name != FsyncEvent || events[1].MostMs != 50 ||
		!slices.Equal(events[1].Spikes, []Spike{{101, 50}, {102, 12}}) {
		t.Errorf("%+v", events)
	}
	if n := m.Remove(func(name string) bool { return name == FsyncEvent }); n != 1 || len(m.Read()) != 1 {
		t.Errorf("%d are removed", n)
	}
	threshold = 1
	for s := range int64(1000) {
		note(CommandEvent, s+10, 5)
	}
	if e := m.Read()[0]; len(e.Spikes) != mostSpikes || e.Spikes[0].UnixS != 950 || e.MostMs != 50 {
		t.Errorf("%d spikes from %+v", len(e.Spikes), e.Spikes[0])
	}
}
