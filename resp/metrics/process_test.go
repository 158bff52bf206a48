package metrics

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each sample of the runtime exists, and what must be above 0 is.
func TestProcessMetrics(t *testing.T) {
	var l List
	Process(&l, time.Unix(1.5e9, 0))
	got := map[string]float64{}
	for _, metric := range l.metrics {
		got[metric.Name] = metric.number()
		if !strings.HasSuffix(metric.Help, ".") || (metric.Kind == "counter") != strings.HasSuffix(metric.Name, "_total") {
			t.Errorf("%+v", metric)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		optional := strings.HasSuffix(name, "_percent") || strings.Contains(name, "idle") || strings.Contains(name, "released") ||
			strings.Contains(name, "cycles") || strings.Contains(name, "frees")
		if got[name] <= 0 && !optional {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if len(got) != len(l.metrics) || got["process_start_time_seconds"] != 1.5e9 ||
		got["go_memstats_heap_sys_bytes"] != got["go_memstats_heap_inuse_bytes"]+got["go_memstats_heap_idle_bytes"] {
		t.Error(got)
	}
	if _, err := os.Stat("/proc/self/statm"); err == nil {
		for _, name := range []string{
			"process_resident_memory_bytes", "process_virtual_memory_bytes", "process_open_fds", "process_max_fds",
			"process_cpu_seconds_total",
		} {
			if got[name] <= 0 {
				t.Errorf("%s is %v", name, got[name])
			}
		}
		if got["process_resident_memory_bytes"] < 1<<20 || got["process_virtual_memory_bytes"] <= got["process_resident_memory_bytes"] {
			t.Error(got)
		}
	}
}
