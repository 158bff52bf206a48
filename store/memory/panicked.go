package memory

import (
	"runtime"
	"strings"
)

// PanickedIn reports whether the panic that the calling deferred function has recovered came from one of these packages, or from one below
// them. Packages are named by import path. If it came from celld/store/memory, a shard may be locked, or half changed. PanickedIn looks at
// the stack, which costs nothing until there is a panic.
func PanickedIn(packages ...string) bool {
	callers := make([]uintptr, 1024)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		for _, path := range packages {
			if below, is := strings.CutPrefix(frame.Function, path); is && below != "" && (below[0] == '.' || below[0] == '/') {
				return true
			}
		}
	}
	return false
}
