package metrics

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"
)

// runtimeMetrics are the metrics of Go's runtime under the names that client_golang gives them, so that boards made for any Go program
// show celld, too. Each is the sum of samples of package runtime/metrics, and a counter if it is a _total.
var runtimeMetrics = []struct {
	name, help string
	samples    []string
}{
	{"go_goroutines", "Goroutines.", []string{"/sched/goroutines:goroutines"}},
	{"go_threads", "Threads of the operating system.", []string{"/sched/threads/total:threads"}},
	{"go_sched_gomaxprocs_threads", "Threads that may run Go code at once (GOMAXPROCS).", []string{"/sched/gomaxprocs:threads"}},
	{"go_gc_gogc_percent", "How much the heap may grow before it is collected (GOGC).", []string{"/gc/gogc:percent"}},
	{"go_gc_gomemlimit_bytes", "Memory limit of the runtime (GOMEMLIMIT).", []string{"/gc/gomemlimit:bytes"}},
	{"go_gc_cycles_total", "Collections that have ended.", []string{"/gc/cycles/total:gc-cycles"}},
	{"go_memstats_alloc_bytes", "Objects on the heap, in bytes.", []string{heapObjects}},
	{"go_memstats_heap_alloc_bytes", "Objects on the heap, in bytes. The same as go_memstats_alloc_bytes.", []string{heapObjects}},
	{"go_memstats_heap_objects", "Objects on the heap.", []string{"/gc/heap/objects:objects"}},
	{"go_memstats_alloc_bytes_total", "Objects that were allocated, in bytes.", []string{"/gc/heap/allocs:bytes"}},
	{"go_memstats_mallocs_total", "Objects that were allocated.", []string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_frees_total", "Objects that were freed.", []string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_heap_inuse_bytes", "Spans of the heap in use.", []string{heapObjects, heapUnused}},
	{"go_memstats_heap_idle_bytes", "Spans of the heap without objects.", []string{heapFree, heapReleased}},
	{"go_memstats_heap_released_bytes", "Spans of the heap without objects that were given back to the system.", []string{heapReleased}},
	{"go_memstats_heap_sys_bytes", "Address space of the heap.", []string{heapObjects, heapUnused, heapFree, heapReleased}},
	{"go_memstats_stack_inuse_bytes", "Stacks of goroutines.", []string{"/memory/classes/heap/stacks:bytes"}},
	{"go_memstats_next_gc_bytes", "Size of the heap at which the next collection ends.", []string{"/gc/heap/goal:bytes"}},
	{"go_memstats_sys_bytes", "Address space of the runtime.", []string{"/memory/classes/total:bytes"}},
}

const (
	heapObjects  = "/memory/classes/heap/objects:bytes"
	heapUnused   = "/memory/classes/heap/unused:bytes"
	heapFree     = "/memory/classes/heap/free:bytes"
	heapReleased = "/memory/classes/heap/released:bytes"
)

// Process declares the metrics of Go's runtime and of the process. A figure that the system does not give is left out.
func Process(l *List, born time.Time) {
	l.Gauge(Metric{Name: "go_info", Help: "The version of Go, as label.", Labels: []string{"version", runtime.Version()}, Value: 1})
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
		add := l.Gauge
		if strings.HasSuffix(row.name, "_total") {
			add = l.Counter
		}
		add(Metric{Name: row.name, Help: row.help, Value: sum})
	}
	l.Gauge(Metric{Name: "process_start_time_seconds", Help: "When the process began to serve, in Unix seconds.", Value: born})
	if user, system, ok := cpuTime(); ok {
		l.Counter(Metric{Name: "process_cpu_seconds_total", Help: "CPU time in user and system mode.", Value: user + system})
	}
	if virtual, resident, ok := memoryPages(); ok {
		page := int64(os.Getpagesize())
		l.Gauge(Metric{Name: "process_virtual_memory_bytes", Help: "Address space of the process.", Value: virtual * page})
		l.Gauge(Metric{Name: "process_resident_memory_bytes", Help: "Memory of the process that is resident, its program included.",
			Value: resident * page})
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		l.Gauge(Metric{Name: "process_open_fds", Help: "Open file descriptors.", Value: len(files) - 1}) // one is ReadDir's
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		l.Gauge(Metric{Name: "process_max_fds", Help: "Most open file descriptors.", Value: limit.Cur})
	}
}

// CPU declares the fields of INFO about CPU time. There are none where the system does not tell it.
func CPU(l *List) {
	user, system, ok := cpuTime()
	if !ok {
		return
	}
	l.Field("used_cpu_sys", fmt.Sprintf("%.6f", system.Seconds()))
	l.Field("used_cpu_user", fmt.Sprintf("%.6f", user.Seconds()))
	l.Field("used_cpu_sys_children", "0.000000") // nothing is forked
	l.Field("used_cpu_user_children", "0.000000")
}

// memoryPages reads the process's size and resident size, in pages (proc(5), statm).
func memoryPages() (virtual, resident int64, ok bool) {
	text, _ := os.ReadFile("/proc/self/statm")
	_, err := fmt.Sscan(string(text), &virtual, &resident)
	return virtual, resident, err == nil
}
