package metrics

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"celld/persistence"
	"celld/persistence/load"
	"celld/store"
	"celld/store/memory"
)

var update = flag.Bool("update", false, "write what is declared to testdata/")

// The declarations of files and of an engine: all names, and the values of each.
func TestDeclared(t *testing.T) {
	wall := func(nowNS int64) time.Time { return time.Unix(0, nowNS) }
	n := store.Counts{Calls: 31, Failures: 32, Timeouts: 33, Conflicts: 34, DenialsRemembered: 35, DecidedWithout: 36, Refused: 37,
		DecidedAhead: 38, UnitsTaken: 39, UnitsGivenBack: 40, UnitsEnded: 41}
	var b strings.Builder
	for _, part := range []struct {
		name string
		read func(l *List)
	}{
		{"no files", func(l *List) { Files(l, persistence.Status{LastSaveNS: 4e9}, nil, wall) }},
		{"files", func(l *List) {
			Files(l, persistence.Status{
				LastSaveNS: 4e9, ChangesSince: 11, Saving: true, SaveBeganNS: 80e9, SaveTookNS: 12e9, Saves: 13, AOF: true, AOFSize: 14,
				AOFBaseSize: 15, AOFPending: 16, AOFFailures: 17, AOFSyncs: 18, AOFSyncNS: 19e9, Rewriting: true, RewriteScheduled: true,
				RewriteBeganNS: 70e9, RewriteTookNS: -1, Rewrites: 20, Loaded: load.Result{Keys: 21, Expired: 22},
			}, nil, wall)
		}},
		{"files that fail", func(l *List) {
			err := errors.New("the disk is full")
			Files(l, persistence.Status{SaveErr: err, RewriteErr: err, AOFErr: err, AOF: true},
				&load.Progress{BeganNS: 23e9, Done: 1, Total: 3}, wall)
		}},
		{"engine", func(l *List) {
			Engine(l, store.Facts{Name: "redis://there", Kind: "cluster", Mode: "engine", Since: time.Unix(24, 5e8), SlotsKnown: true,
				SlotsWithoutMaster: 25, Version: "7.2", Eviction: "noeviction", Persistence: "none", ClockKnown: true,
				ClockAhead: 26 * time.Microsecond, WaitingBytes: 27})
			EngineCounters(l, n)
		}},
		{"engine that is away", func(l *List) { Engine(l, store.Facts{Away: errors.New("it is gone")}) }},
	} {
		fmt.Fprintf(&b, "# %s\n", part.name)
		for _, m := range New(Section{Read: part.read}).Read(100e9) {
			if m.Kind == "" || (m.Name != "") != (m.Help != "") {
				t.Errorf("%+v", m)
			}
			fmt.Fprintf(&b, "%s %q %s %q %s: %s, %v, lasts %v\n", m.Kind, m.Field, m.Name, m.Labels, m.JSON, m.text(), m.number(), m.Lasts)
		}
	}
	const path = "testdata/declared.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(b.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("line %d of %s is not declared any more: %s", i+1, path, line)
		}
	}
	if len(got) != strings.Count(string(want), "\n")+1 {
		t.Errorf("more is declared than stands in %s", path)
	}
}

// The peak is the most that was read, and the other numbers fit to each other.
func TestHeap(t *testing.T) {
	var h Heap
	used, held, peak := h.Read()
	if used <= 0 || held < used || peak != used {
		t.Errorf("%d used, %d held, peak %d", used, held, peak)
	}
	h.peak.Store(1 << 60)
	if _, _, peak = h.Read(); peak != 1<<60 {
		t.Errorf("the peak falls to %d", peak)
	}
	info := New(Section{Name: "Memory", Read: h.Declare}).Info(0, "memory")
	for _, field := range []string{
		"used_memory:", "used_memory_human:", "used_memory_rss:", "used_memory_rss_human:", "used_memory_peak:1152921504606846976\r\n",
		"used_memory_peak_human:1048576.00T\r\n",
	} {
		if !strings.Contains(info, "\n"+field) {
			t.Errorf("%s is not in %s", field, info)
		}
	}
}

// stored counts how often it is asked.
type stored struct{ asked int }

func (s *stored) Stats(nowNS int64) memory.Stats {
	s.asked++
	return memory.Stats{Expired: nowNS}
}

// A reading asks a store once.
func TestKeysAreReadOnce(t *testing.T) {
	var s stored
	l := List{NowNS: 7}
	if a, b := l.Keys(&s), l.Keys(&s); a.Expired != 7 || a != b || s.asked != 1 {
		t.Errorf("%d, asked %d times", a.Expired, s.asked)
	}
}

func TestNewHistogram(t *testing.T) {
	if h := NewHistogram(5, 3); len(h.Below) != 3 || fmt.Sprint(h.MostNS) != "[5 20 80]" {
		t.Errorf("%+v", h)
	}
}
