//go:build unix

package metrics

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has had of the CPUs, in user and in system mode.
func cpuTime() (user, system time.Duration, ok bool) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, false
	}
	return time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano()), true
}
