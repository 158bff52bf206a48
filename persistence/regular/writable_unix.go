//go:build unix

package regular

import "golang.org/x/sys/unix"

// Writable returns why this process cannot make files in a directory, or nil.
func Writable(dir string) error { return unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) }
