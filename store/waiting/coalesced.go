package waiting

import (
	"slices"

	"celld/store"
)

// A client that has connected anew may repeat a call that still waits under the name of a lease. If the repeat asks for the same, it is
// coalesced with the first, its leader: it is answered together with that, and alike. When the leader leaves, its first follower takes its
// place in the line. A call that asks for something else under that name waits by itself, and is then answered as any repeat.

// name is what a repeat is found by: its lease's name, under the first of its keys.
type name struct{ name, key string }

func (w *Waiter[W]) name() name { return name{w.want.name, string(w.Calls[0].Key)} }

// coalesces reports whether a call can be coalesced with another.
func coalesces(req *store.TakeRequest) bool {
	return req.Terms != nil && req.Terms.Mode == store.Wait && req.Terms.Name != ""
}

// Leader is the waiter to coalesce a call with; nil: the call stands by itself.
func (r *Room[W]) Leader(req *store.TakeRequest) (same W) {
	if !coalesces(req) {
		return same
	}
	want := wantOf(req)
	r.mu.Lock()
	first := r.named[name{want.name, string(req.Calls[0].Key)}]
	r.mu.Unlock()
	if first == same {
		return same
	}
	if w := first.waiter(); w.want != want || !w.sameLimits(req.Calls) {
		return same
	}
	return first
}

// Register makes a waiter that stands in a Line the leader of its name, if there is none yet.
func (r *Room[W]) Register(as W) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.register(as)
}

func (r *Room[W]) register(as W) {
	w := as.waiter()
	if none := *new(W); coalesces(w.Request) && r.named[w.name()] == none {
		r.named[w.name()], w.registered = as, true
	}
}

func (r *Room[W]) unregister(w *Waiter[W]) {
	if w.registered {
		delete(r.named, w.name())
		w.registered = false
	}
}

// Coalesce makes a waiter a follower of another, its leader.
func (r *Room[W]) Coalesce(as, first W) {
	as.waiter().Leader = first
	f := first.waiter()
	f.Followers = append(f.Followers, as)
}

// StepOut takes a waiter that leaves away from its leader, or gives its name and ticket to its first follower, next, which is to take its
// place in the Line. Otherwise nobody takes its place there: then alone is true.
func (r *Room[W]) StepOut(as W) (next W, alone bool) {
	w := as.waiter()
	switch {
	case w.Leader != next:
		f := w.Leader.waiter()
		f.Followers = slices.DeleteFunc(f.Followers, func(j W) bool { return j == as })
		w.Leader = next
		return next, false
	case len(w.Followers) == 0:
		return next, true
	}
	next = w.Followers[0]
	n := next.waiter()
	n.Leader, n.Followers, w.Followers = *new(W), w.Followers[1:], nil
	for _, j := range n.Followers {
		j.waiter().Leader = next
	}
	n.Ticket, n.Access.NowNS = w.Ticket, w.Access.NowNS
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unregister(w)
	r.register(next)
	return next, false
}
