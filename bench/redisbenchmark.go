//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// driven is what redis-benchmark tells of a run. Latencies are in ms, from writing a pipeline to the first bytes of its
// replies.
type driven struct {
	perSecond           float64
	p50, p99, p999, max float64
}

// redisBenchmark drives a server with requests of these words.
func redisBenchmark(ctx context.Context, program string, s *server, w drive) (driven, error) {
	port := s.port
	if w.tls {
		port = s.otherPort
	}
	args := []string{"-h", "127.0.0.1", "-p", strconv.Itoa(port), "-c", strconv.Itoa(w.clients), "-P", strconv.Itoa(w.pipeline),
		"-n", strconv.Itoa(w.requests)}
	if w.tls {
		args = append(args, "--tls", "--cacert", s.certPath())
	}
	if !s.peer.pings() {
		args = append(args, "-r", strconv.Itoa(w.keys))
	}
	out, err := exec.CommandContext(ctx, program, append(args, w.words(s.peer)...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "Error from server") {
		return driven{}, fmt.Errorf("redis-benchmark: %v: %s", err, lastLine(string(out)))
	}
	return parseRedisBenchmark(string(out))
}

var (
	perSecondLine  = regexp.MustCompile(`throughput summary: ([0-9.]+) requests per second`)
	percentileLine = regexp.MustCompile(`(?m)^([0-9.]+)% <= ([0-9.]+) milliseconds \(cumulative count \d+\)$`)
)

// parseRedisBenchmark reads the text that redis-benchmark prints without --csv and -q: its summary has p50, p99 and the
// longest, its distribution by percentile has p99.9 (the first step at or beyond it; the steps halve what is left, so
// that is 99.902).
func parseRedisBenchmark(text string) (driven, error) {
	var d driven
	rate := perSecondLine.FindStringSubmatch(text)
	_, summary, ok := strings.Cut(text, "latency summary (msec):\n")
	if rate == nil || !ok {
		return d, errors.New("redis-benchmark printed no summary")
	}
	lines := strings.SplitN(summary, "\n", 3)
	if len(lines) < 2 || strings.Join(strings.Fields(lines[0]), " ") != "avg min p50 p95 p99 max" {
		return d, fmt.Errorf("redis-benchmark's summary is %q", summary)
	}
	values := append(strings.Fields(lines[1]), rate[1])
	var numbers [7]float64
	if len(values) != len(numbers) {
		return d, fmt.Errorf("redis-benchmark's summary is %q", summary)
	}
	for i, value := range values {
		var err error
		if numbers[i], err = strconv.ParseFloat(value, 64); err != nil {
			return d, fmt.Errorf("redis-benchmark's summary: %w", err)
		}
	}
	d = driven{perSecond: numbers[6], p50: numbers[2], p99: numbers[4], max: numbers[5]}

	_, distribution, _ := strings.Cut(text, "Latency by percentile distribution:")
	for _, m := range percentileLine.FindAllStringSubmatch(distribution, -1) {
		percent, err1 := strconv.ParseFloat(m[1], 64)
		ms, err2 := strconv.ParseFloat(m[2], 64)
		if err := errors.Join(err1, err2); err != nil {
			return d, err
		}
		if percent >= 99.9 {
			d.p999 = ms
			return d, nil
		}
	}
	return d, errors.New("redis-benchmark printed no distribution by percentile")
}

func lastLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return ""
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
