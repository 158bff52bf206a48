//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
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
func readRSS(pid int) (int64, error) { return readField(pid, "status", "VmRSS") }

// readWritten is how many bytes a process has had written to disk, in pages as they got dirty. What is written to a page
// once more after it went to the disk counts again.
func readWritten(pid int) (int64, error) { return readField(pid, "io", "write_bytes") }

// readGroupPSS is the memory of a process group in bytes: that of the server and of the child that it forked to save,
// where a page that both share counts once.
func readGroupPSS(group int) (sum int64, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if of, err := syscall.Getpgid(pid); err != nil || of != group {
			continue
		}
		pss, err := readField(pid, "smaps_rollup", "Pss")
		if err != nil && pid == group {
			return 0, err
		}
		sum += pss // 0 for a child that has just ended
	}
	return sum, nil
}

// readField is a number of a file of /proc/PID.
func readField(pid int, file, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	return parseField(text, name)
}

// parseField reads the line "name: number", or "name: number kB", and returns bytes.
func parseField(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name+":"))
		if !ok {
			continue
		}
		digits, isKB := bytes.CutSuffix(bytes.TrimSpace(rest), []byte(" kB"))
		n, err := strconv.ParseInt(string(digits), 10, 64)
		if isKB {
			n <<= 10
		}
		return n, err
	}
	return 0, fmt.Errorf("no %s of the process", name)
}
