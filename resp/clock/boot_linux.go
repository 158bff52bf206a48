package clock

import "golang.org/x/sys/unix"

// bootNS reads CLOCK_BOOTTIME, which also runs while the machine is suspended.
func bootNS() (int64, bool) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return ts.Nano(), err == nil
}
