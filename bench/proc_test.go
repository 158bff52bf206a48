//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"celld/internal/celldtest"
)

func TestParseStat(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       time.Duration
		bad        bool
	}{
		{"as proc(5) has it", "77 (celld) S 1 77 77 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 7 0 100 1 2", 1750 * time.Millisecond, false},
		{"a name with blanks and parentheses", "77 (a) b (c d) S 1 77 77 0 -1 4194560 900 0 0 0 1 2 0 0 20 0 7 0 100 1 2", 30 * time.Millisecond, false},
		{"cut short", "77 (celld) S 1 77 77 0 -1", 0, true},
		{"no name", "77", 0, true},
		{"no number", "77 (celld) S 1 77 77 0 -1 4194560 900 0 0 0 x 25 0 0", 0, true},
	} {
		got, err := parseStat([]byte(test.text))
		if (err != nil) != test.bad || !test.bad && got != test.want {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	if got, err := parseSchedstat([]byte("123456789 99 4\n")); got != 123456789 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := parseSchedstat([]byte("\n")); err == nil {
		t.Error("an empty file has no error")
	}
}

func TestParseField(t *testing.T) {
	const text = "Name:\tcelld\nVmHWM:\t    9000 kB\nPss:         7012 kB\nPss_Dirty:   1 kB\nwrite_bytes: 40960\n"
	for _, test := range []struct {
		name string
		want int64
		bad  bool
	}{
		{"Pss", 7012 << 10, false}, {"write_bytes", 40960, false}, {"VmRSS", 0, true}, {"Name", 0, true},
	} {
		if got, err := parseField([]byte(text), test.name); got != test.want || (err != nil) != test.bad {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
	}
}

// TestGroupPSS starts a child in a group of its own, and one of that in the same.
func TestGroupPSS(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	defer cmd.Wait()
	defer syscall.Kill(-group, syscall.SIGKILL)
	celldtest.Eventually(t, "the child's memory counts", func() bool {
		own, err := readField(group, "smaps_rollup", "Pss")
		sum, err2 := readGroupPSS(group)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return own > 0 && sum > own
	})
}

func TestCPUSince(t *testing.T) {
	before := cpuClock{threads: map[string]time.Duration{"1": 5, "2": 7}, ticks: 10 * time.Millisecond}
	for _, test := range []struct {
		name  string
		after cpuClock
		want  time.Duration
	}{
		{"a new thread", cpuClock{map[string]time.Duration{"1": 6, "2": 9, "3": 4}, 20 * time.Millisecond}, 7},
		{"a thread ended", cpuClock{map[string]time.Duration{"1": 6}, 20 * time.Millisecond}, 10 * time.Millisecond},
	} {
		if got := test.after.since(before); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestReadCPU uses CPU and reads how much: both sources count the same.
func TestReadCPU(t *testing.T) {
	before, err := readCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	began, got := time.Now(), time.Duration(0)
	for got <= 0 && time.Since(began) < time.Minute { // of which a loaded machine may give little
		after, err := readCPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		got = after.since(before)
	}
	if got <= 0 || got > time.Minute {
		t.Errorf("work took %v of CPU", got)
	}
}
