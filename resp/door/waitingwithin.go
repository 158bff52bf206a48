package door

import (
	"sync"

	"celld/resp/client"
	"celld/store"
)

// waitingWithin are the requests within the process that wait, which no client in the list has.
type waitingWithin struct {
	mu       sync.Mutex
	requests map[*store.TakeRequest]struct{}
}

func (w *waitingWithin) add(r *store.TakeRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests == nil {
		w.requests = map[*store.TakeRequest]struct{}{}
	}
	w.requests[r] = struct{}{}
}

func (w *waitingWithin) remove(r *store.TakeRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.requests, r)
}

// refuse answers all of them as refused.
func (w *waitingWithin) refuse(from client.Leaver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.requests {
		from.Leave(r, store.ErrRefused)
	}
}

// RefuseWaiting answers all calls that wait as refused, and all that would from now on.
func (d *Door) RefuseWaiting() {
	d.Refusing.Store(true)
	d.within.refuse(d.Port)
	for _, c := range d.Clients.All() {
		c.Unblock(d.Port, store.ErrRefused)
	}
}
