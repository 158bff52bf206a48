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

// EndWait lets a call that comes after RefuseWaiting be decided as one that does not wait. On an engine it is not decided yet when it is
// told that it waits no more: it would be denied though the limit has room.
func (d *Door) EndWait(t *store.Terms) {
	if t != nil && t.Mode == store.Wait && d.Refusing.Load() {
		t.Mode = store.DontWait
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
