//go:build linux

package main

import (
	"syscall"
	"time"
)

// sleepThread sleeps in the kernel instead of in Go's scheduler.
func sleepThread(d time.Duration) {
	left := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&left, nil) // woken early by a signal is no harm
}
