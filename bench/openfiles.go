//go:build linux

package main

import (
	"fmt"
	"syscall"
)

// raiseOpenFiles lets this process, and the servers that it starts from now on, open so many files.
func raiseOpenFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Max < n {
		return fmt.Errorf("the limit on open files is %d; this row needs %d (ulimit -n)", limit.Max, n)
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
