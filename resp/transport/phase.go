package transport

import "sync/atomic"

// phase is the state of a connection. It only goes up.
type phase int32

const (
	fresh   phase = iota // nobody reads from it yet
	open                 // it is served
	closing              // it ends when its replies have left, or when its peer reads nothing for 10 s
	cut                  // it ends as soon as Serve returns, and unsent replies are lost
	gone                 // its socket is closed, and its session knows
)

// life is a connection's phase. Any goroutine may read it and raise it.
type life struct{ phase atomic.Int32 }

func (l *life) at() phase { return phase(l.phase.Load()) }

// reach raises the phase to p, and reports whether it was lower before.
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
