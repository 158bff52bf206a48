package celldtest

import (
	"syscall"
	"testing"
	"time"
)

// CPUTime is the CPU time of this process so far. Unlike wall time, it is the same on a loaded machine.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
