package session

import (
	"fmt"
	"runtime/debug"

	"celld/store/memory"
)

// Survive is deferred around what may fail without harm to anything else. It logs and counts a panic, and lets the process
// go on if that is safe.
func (srv *Service) Survive(where string, about ...any) {
	if cause := recover(); cause != nil {
		srv.panicked(cause, where, about...)
	}
}

// panicked logs and counts a panic that was recovered, and ends the process if the limits cannot be trusted any more: doc.go
// says when. It is called by the deferred function, where the stack still shows who panicked.
func (srv *Service) panicked(cause any, where string, about ...any) {
	srv.Stats.Panics.Add(1)
	about = append([]any{"where", where, "panic", fmt.Sprint(cause), "stack", string(debug.Stack())}, about...)
	if memory.PanickedIn("celld/store/memory", "celld/cell", "celld/persistence") {
		srv.fatal("panic in the limits or their files, cannot go on", about...)
		return
	}
	srv.Log.Error("panic", about...)
}

// fatal ends the process. Nothing is saved: what is in memory is not to be trusted.
func (srv *Service) fatal(message string, about ...any) {
	srv.Log.Error(message, about...)
	srv.Stopping.exit(1)
}

// Panicked is for the HTTP port, whose deferred functions recover a panic and call it.
func (srv *Service) Panicked(cause any, where string) { srv.panicked(cause, where) }
