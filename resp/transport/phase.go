package transport

import "sync/atomic"

// phase is where a connection stands in its life. It only goes up.
type phase int32

const (
	fresh   phase = iota // nobody reads from it yet
	open                 // it is served
	closing              // it ends when its replies have left, or its peer has taken nothing for a while
	cut                  // it ends as soon as it is not being served, whatever has not left
	gone                 // its socket is closed, and its session knows
)

// life is a connection's phase. Any goroutine may read it, and have it closed.
type life struct{ phase atomic.Int32 }

func (l *life) at() phase { return phase(l.phase.Load()) }

// reach goes up to a phase, and reports whether that was still to come.
func (l *life) reach(p phase) bool {
	for {
		old := l.phase.Load()
		if old >= int32(p) {
			return false
		}
		if l.phase.CompareAndSwap(old, int32(p)) {
			return true
		}
	}
}
