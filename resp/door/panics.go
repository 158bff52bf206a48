package door

import (
	"fmt"
	"runtime/debug"

	"celld/store/memory"
)

// Survive is deferred around what may fail without harm to anything else. It logs and counts a panic, and lets the process
// go on if that is safe.
func (d *Door) Survive(where string, about ...any) {
	if cause := recover(); cause != nil {
		d.Panic(cause, where, about...)
	}
}

// Panic logs and counts a panic that was recovered, and ends the process if the limits cannot be trusted any more: doc.go
// says when. It is called by the deferred function, where the stack still shows who panicked.
func (d *Door) Panic(cause any, where string, about ...any) {
	d.Stats.Panics.Add(1)
	about = append([]any{"where", where, "panic", fmt.Sprint(cause), "stack", string(debug.Stack())}, about...)
	if memory.PanickedIn("celld/store/memory", "celld/cell", "celld/persistence") {
		d.Fatal("panic in the limits or their files, cannot go on", about...)
		return
	}
	d.Log.Error("panic", about...)
}

// Fatal ends the process. Nothing is saved: what is in memory is not to be trusted.
func (d *Door) Fatal(message string, about ...any) {
	d.Log.Error(message, about...)
	d.Exit(1)
}
