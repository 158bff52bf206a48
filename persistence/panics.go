package persistence

import (
	"fmt"
	"runtime/debug"

	"celld/store/memory"
)

// caught turns a panic into an error. It is deferred where a file is written that nobody needs before it is complete.
// It passes on a panic in the store, as a shard may be locked.
func (d *Disk) caught(what string, err *error) {
	if cause := recover(); cause != nil {
		if memory.PanickedIn("celld/store/memory", "celld/cell") {
			panic(cause)
		}
		*err = fmt.Errorf("%s: panic: %v\n%s", what, cause, debug.Stack())
	}
}

// escaped is deferred by each goroutine of the Disk. A panic that gets there ends the process, with a line in the log, as the
// append-only file may lack changes that were reported as written.
func (d *Disk) escaped(what string) {
	if cause := recover(); cause != nil {
		d.log.Error("panic in the files, cannot go on", "where", what, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		d.exit(1)
	}
}
