package celldtest

import (
	"sync"
	"time"
)

// Hands is a clock with timers. It is the system's until Set is called; from then on a test moves it. The zero value is ready.
type Hands struct {
	mu     sync.Mutex
	at     time.Time // zero: it is the system's
	timers []timer
}

type timer struct {
	at time.Time
	do func()
}

// Set stops the clock at an instant.
func (h *Hands) Set(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = at
}

// Now is what the clock shows.
func (h *Hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() {
		return time.Now()
	}
	return h.at
}

// After calls do once so much time has passed.
func (h *Hands) After(d time.Duration, do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() {
		time.AfterFunc(d, do)
		return
	}
	h.timers = append(h.timers, timer{h.at.Add(d), do})
}

// Waiting is how many timers are set.
func (h *Hands) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.timers)
}

// Pass moves a clock that was Set, and calls what is due.
func (h *Hands) Pass(d time.Duration) {
	h.mu.Lock()
	h.at = h.at.Add(d)
	var due, later []timer
	for _, timer := range h.timers {
		if timer.at.After(h.at) {
			later = append(later, timer)
		} else {
			due = append(due, timer)
		}
	}
	h.timers = later
	h.mu.Unlock()
	for _, timer := range due {
		timer.do()
	}
}
