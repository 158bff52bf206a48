package metrics

import (
	"fmt"
	"runtime/metrics"
	"sync/atomic"
)

// Heap reads what memory Go holds. Its zero value is ready.
type Heap struct{ peak atomic.Int64 }

// Read returns the bytes of all objects (used), those that the runtime holds in all, and the most that used has been when it was read.
func (h *Heap) Read() (used, held, peak int64) {
	samples := []metrics.Sample{{Name: heapObjects}, {Name: "/memory/classes/total:bytes"}, {Name: heapReleased}}
	metrics.Read(samples)
	used = int64(samples[0].Value.Uint64())
	held = int64(samples[1].Value.Uint64() - samples[2].Value.Uint64())
	for {
		if peak = h.peak.Load(); used <= peak {
			return used, held, peak
		}
		if h.peak.CompareAndSwap(peak, used) {
			return used, held, used
		}
	}
}

// Gaps returns the bytes between objects, where only others of the same size can lie.
func (*Heap) Gaps() int64 {
	sample := []metrics.Sample{{Name: heapUnused}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// Declare declares what Read returns.
func (h *Heap) Declare(l *List) {
	used, held, peak := h.Read()
	l.Gauge(Metric{Field: "used_memory", JSON: "heap_bytes", Value: used})
	l.Field("used_memory_human", HumanBytes(used))
	l.Gauge(Metric{Field: "used_memory_rss", JSON: "process_bytes", Value: held})
	l.Field("used_memory_rss_human", HumanBytes(held))
	l.Field("used_memory_peak", peak)
	l.Field("used_memory_peak_human", HumanBytes(peak))
}

// HumanBytes writes a size as Redis does: 512B, 1.50K, 2.00M.
func HumanBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < 4 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.2f%c", value, " KMGT"[unit])
}
