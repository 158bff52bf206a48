package persistence

import (
	"fmt"
	"runtime/debug"

	"celld/store"
)

// caught is deferred where a file is written that nobody needs until it is whole: it makes an error of a panic there. One in
// the store is passed on, as a shard may be locked.
func (d *Disk) caught(what string, err *error) {
	if cause := recover(); cause != nil {
		if store.PanickedIn("celld/store", "celld/cell") {
			panic(cause)
		}
		*err = fmt.Errorf("%s: panic: %v\n%s", what, cause, debug.Stack())
	}
}

// escaped is deferred by each goroutine of the Disk: a panic that comes so far ends the process, with a line in the log. The
// file that it was about may lack what was told to be in it.
func (d *Disk) escaped(what string) {
	if cause := recover(); cause != nil {
		d.log.Error("panic in the files, cannot go on", "where", what, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		d.exit(1)
	}
}
