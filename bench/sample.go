//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// metric names one figure, with its unit; in the JSON file too.
type metric string

const (
	cpuMicroseconds metric = "cpu_us_per_command"
	perSecond       metric = "commands_per_second"
	p50             metric = "p50_ms"
	p99             metric = "p99_ms"
	p999            metric = "p99_9_ms"
	longest         metric = "longest_ms"
	rssMB           metric = "rss_mb"
	bytesPerKey     metric = "bytes_per_key"
	bytesPerKeyGone metric = "bytes_per_key_once_gone"
	goneSeconds     metric = "expired_keys_gone_after_s" // 60: not yet
	growP999        metric = "growing_p99_9_ms"
	growLongest     metric = "growing_longest_ms"
	expireP999      metric = "expiring_p99_9_ms"
	expireLongest   metric = "expiring_longest_ms"
	kbPerSilent     metric = "kb_per_silent_connection"
	kbPerConnection metric = "kb_per_idle_connection"
	freshMB         metric = "fresh_process_mb"
	bytesWritten    metric = "bytes_written_per_command" // to disk
	loadSeconds     metric = "load_s"
	saveSeconds     metric = "save_s"
	fileMB          metric = "file_mb"
	memoryMB        metric = "memory_mb"
	peakRatio       metric = "peak_memory_over_before"
	restLongest     metric = "at_rest_longest_ms"
	bgsaveP999      metric = "bgsave_p99_9_ms"
	bgsaveLongest   metric = "bgsave_longest_ms"
	rewriteP999     metric = "rewrite_p99_9_ms"
	rewriteLongest  metric = "rewrite_longest_ms"
)

// sample is what one step measured.
type sample map[metric]float64

func (s sample) String() string {
	var parts []string
	for m, v := range s {
		parts = append(parts, fmt.Sprintf("%s %s", m, number(v)))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// spread is a figure over all rounds.
type spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"` // in the order of the rounds
}

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Rounds: values}
}

// number writes three significant digits, and all those before the point.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1 || v <= -1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
