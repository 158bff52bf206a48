package persistence

import (
	"fmt"
	"runtime/debug"

	"celld/store/memory"
)

// catchPanic turns a panic into an error. Defer it where a file is written that nobody needs before it is complete. It passes on a panic
// in the store, as a shard may be locked.
func (d *Disk) catchPanic(what string, err *error) {
	if cause := recover(); cause != nil {
		if memory.PanickedIn("celld/store/memory", "celld/cell") {
			panic(cause)
		}
		*err = fmt.Errorf("%s: panic: %v\n%s", what, cause, debug.Stack())
	}
}

// endOnPanic ends the process after a panic, with a line in the log, as the append-only file may lack changes that were reported as
// written. Each goroutine of the Disk defers it.
func (d *Disk) endOnPanic(what string) {
	if cause := recover(); cause != nil {
		d.log.Error("panic in the files, cannot go on", "where", what, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		d.exit(1)
	}
}
