package transport

import "sync"

// turns has so many handshakes compute at a time. Those that have begun to answer their peer go first: what has been computed for them
// would be lost if newer ones kept them waiting for too long. Within both kinds the first to come goes first.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting [2][]chan struct{} // those that have begun, and the others
}

// take waits for a turn, which ends with give.
func (t *turns) take(begun bool) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	kind, turn := 1, make(chan struct{})
	if begun {
		kind = 0
	}
	t.waiting[kind] = append(t.waiting[kind], turn)
	t.mu.Unlock()
	<-turn
}

func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, waiting := range t.waiting {
		if len(waiting) > 0 {
			close(waiting[0])
			t.waiting[i] = waiting[1:]
			return
		}
	}
	t.free++
}
