//go:build unix

package resp

import "golang.org/x/sys/unix"

// cpuTime is what this process has had of the CPUs, in user and in system mode.
func cpuTime() (userNS, systemNS int64, ok bool) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, false
	}
	return usage.Utime.Nano(), usage.Stime.Nano(), true
}
