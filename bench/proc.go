//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// cpuClock is the CPU time that a process has used so far.
//
// The scheduler counts it by thread in ns (/proc/PID/task/TID/schedstat), but forgets a thread that ends; utime + stime
// of /proc/PID/stat holds those too, in ticks of 10 ms.
type cpuClock struct {
	threads map[string]time.Duration
	ticks   time.Duration
}

// tick is USER_HZ, 100 a second on every Linux.
const tick = 10 * time.Millisecond

func readCPU(pid int) (cpuClock, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return cpuClock{}, err
	}
	c := cpuClock{threads: map[string]time.Duration{}}
	if c.ticks, err = parseStat(stat); err != nil {
		return cpuClock{}, err
	}
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return cpuClock{}, err
	}
	for _, entry := range entries {
		text, err := os.ReadFile(tasks + "/" + entry.Name() + "/schedstat")
		if err != nil {
			continue // it has just ended, or the kernel keeps no schedstat
		}
		if c.threads[entry.Name()], err = parseSchedstat(text); err != nil {
			return cpuClock{}, err
		}
	}
	return c, nil
}

// since is the CPU time between two readings: in ns where no thread ended in between, else in ticks.
func (c cpuClock) since(before cpuClock) time.Duration {
	var sum time.Duration
	for tid, ns := range c.threads {
		sum += ns - before.threads[tid]
	}
	for tid := range before.threads {
		if _, ok := c.threads[tid]; !ok {
			return c.ticks - before.ticks
		}
	}
	if sum == 0 {
		return c.ticks - before.ticks
	}
	return sum
}

// parseStat returns utime + stime of /proc/PID/stat, fields 14 and 15 in proc(5). The second field, the name in
// parentheses, may hold blanks and parentheses.
func parseStat(text []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("no process status: %q", text)
	}
	utime, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	stime, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(utime+stime) * tick, errors.Join(err1, err2)
}

// parseSchedstat returns the first field: ns spent on a CPU.
func parseSchedstat(text []byte) (time.Duration, error) {
	fields := bytes.Fields(text)
	if len(fields) != 3 {
		return 0, fmt.Errorf("no schedstat: %q", text)
	}
	ns, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return time.Duration(ns), err
}

// readRSS is the resident memory of a process in bytes.
func readRSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseRSS(text)
}

// parseRSS reads VmRSS of /proc/PID/status.
func parseRSS(text []byte) (int64, error) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kb, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmRSS in the status of the process")
}
