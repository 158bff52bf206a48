package session

import (
	"sync"

	"celld/resp/client"
	"celld/store"
)

// waitingWithin are the sessions within the process that wait, which are not in the list of clients.
type waitingWithin struct {
	mu      sync.Mutex
	clients map[*client.Client]struct{}
}

func (w *waitingWithin) add(c *client.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clients == nil {
		w.clients = map[*client.Client]struct{}{}
	}
	w.clients[c] = struct{}{}
}

func (w *waitingWithin) remove(c *client.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.clients, c)
}

// refuse answers all of them as refused.
func (w *waitingWithin) refuse(from client.Leaver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.clients {
		c.Unblock(from, store.ErrRefused)
	}
}
