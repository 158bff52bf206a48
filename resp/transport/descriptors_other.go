//go:build !unix

package transport

import "math"

// MostConnections returns the wanted number, as this system has no limit on open files.
func MostConnections(wanted, _ int64) (most int64, openFiles uint64) { return wanted, math.MaxUint64 }
