package resp

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
)

// runtimeMetrics are the metrics of Go's runtime under the names that client_golang gives them, so that boards made for any Go program
// show celld, too. Each is the sum of samples of package runtime/metrics.
var runtimeMetrics = []struct {
	name, help string
	total      bool
	samples    []string
}{
	{"go_goroutines", "Goroutines.", false, []string{"/sched/goroutines:goroutines"}},
	{"go_threads", "Threads of the operating system.", false, []string{"/sched/threads/total:threads"}},
	{"go_sched_gomaxprocs_threads", "Threads that may run Go code at once (GOMAXPROCS).", false, []string{"/sched/gomaxprocs:threads"}},
	{"go_gc_gogc_percent", "How much the heap may grow before it is collected (GOGC).", false, []string{"/gc/gogc:percent"}},
	{"go_gc_gomemlimit_bytes", "Memory limit of the runtime (GOMEMLIMIT).", false, []string{"/gc/gomemlimit:bytes"}},
	{"go_gc_cycles_total", "Collections that have ended.", true, []string{"/gc/cycles/total:gc-cycles"}},
	{"go_memstats_alloc_bytes", "Objects on the heap, in bytes.", false, []string{heapObjects}},
	{"go_memstats_heap_alloc_bytes", "Objects on the heap, in bytes. The same as go_memstats_alloc_bytes.", false, []string{heapObjects}},
	{"go_memstats_heap_objects", "Objects on the heap.", false, []string{"/gc/heap/objects:objects"}},
	{"go_memstats_alloc_bytes_total", "Objects that were allocated, in bytes.", true, []string{"/gc/heap/allocs:bytes"}},
	{"go_memstats_mallocs_total", "Objects that were allocated.", true, []string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_frees_total", "Objects that were freed.", true, []string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_heap_inuse_bytes", "Spans of the heap in use.", false, []string{heapObjects, heapUnused}},
	{"go_memstats_heap_idle_bytes", "Spans of the heap without objects.", false, []string{heapFree, heapReleased}},
	{"go_memstats_heap_released_bytes", "Of these, bytes given back to the system.", false, []string{heapReleased}},
	{"go_memstats_heap_sys_bytes", "Address space of the heap.", false, []string{heapObjects, heapUnused, heapFree, heapReleased}},
	{"go_memstats_stack_inuse_bytes", "Stacks of goroutines.", false, []string{"/memory/classes/heap/stacks:bytes"}},
	{"go_memstats_next_gc_bytes", "Size of the heap at which the next collection ends.", false, []string{"/gc/heap/goal:bytes"}},
	{"go_memstats_sys_bytes", "Address space of the runtime.", false, []string{"/memory/classes/total:bytes"}},
}

const (
	heapObjects  = "/memory/classes/heap/objects:bytes"
	heapUnused   = "/memory/classes/heap/unused:bytes"
	heapFree     = "/memory/classes/heap/free:bytes"
	heapReleased = "/memory/classes/heap/released:bytes"
)

// process adds the metrics of Go's runtime and of the process. What the system does not tell is left out.
func (m *metricList) process(bornSeconds float64) {
	m.gauge("go_info", "The version of Go, as label.", 1, "version", runtime.Version())
	var samples []metrics.Sample
	for _, row := range runtimeMetrics {
		for _, name := range row.samples {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples) // all at once, so that they agree
	for _, row := range runtimeMetrics {
		var sum uint64
		for _, sample := range samples[:len(row.samples)] {
			sum += sample.Value.Uint64()
		}
		samples = samples[len(row.samples):]
		m.list = append(m.list, Metric{Name: row.name, Help: row.help, Value: float64(sum), Total: row.total})
	}
	m.gauge("process_start_time_seconds", "When the process began to serve, in Unix seconds.", bornSeconds)
	if userNS, systemNS, ok := cpuTime(); ok {
		m.total("process_cpu_seconds_total", "CPU time in user and system mode.", float64(userNS+systemNS)/1e9)
	}
	if virtual, resident, ok := memoryPages(); ok {
		page := float64(os.Getpagesize())
		m.gauge("process_virtual_memory_bytes", "Address space of the process.", virtual*page)
		m.gauge("process_resident_memory_bytes", "Memory of the process that is resident, its program included.", resident*page)
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		m.gauge("process_open_fds", "Open file descriptors.", float64(len(files)-1)) // one is ReadDir's
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		m.gauge("process_max_fds", "Most open file descriptors.", float64(limit.Cur))
	}
}

// memoryPages reads the process's size and resident size, in pages (proc(5), statm).
func memoryPages() (virtual, resident float64, ok bool) {
	text, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, 0, false
	}
	virtual, errVirtual := strconv.ParseFloat(fields[0], 64)
	resident, errResident := strconv.ParseFloat(fields[1], 64)
	return virtual, resident, errVirtual == nil && errResident == nil
}
