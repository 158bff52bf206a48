package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// vmRSS is the resident memory of a process in bytes.
func vmRSS(t testing.TB, pid int) int64 {
	t.Helper()
	return procStatus(t, pid, "VmRSS")
}

// procStatus is a figure of a process in bytes: VmRSS, or VmHWM for the peak of that.
func procStatus(t testing.TB, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name+":" {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s in %s", name, text)
	return 0
}
