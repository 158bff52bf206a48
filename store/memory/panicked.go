package memory

import (
	"runtime"
	"strings"
)

// PanickedIn reports whether a function of one of the packages, given by their import paths, or of one below them was running when
// the panic came that the calling deferred function has recovered. Where it is celld/store/memory, a shard may be locked, or half
// changed. It looks at the stack, which costs nothing until there is a panic.
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
