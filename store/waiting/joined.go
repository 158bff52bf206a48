package waiting

import (
	"slices"

	"celld/store"
)

// A call that waits under a name of a lease may be asked again, by a client that has connected anew. If it asks for the same it joins
// the first: it is answered when that is, with the same. When the first goes, the next takes its place in the queue. One that asks for
// something else under that name waits by itself, and when its turn comes it is answered as any repeat.

// name is what a repeat of a call that waits is known by: its lease's name, under the first of its keys.
type name struct{ name, key string }

func (w *Waiter[W]) name() name { return name{w.want.name, string(w.Calls[0].Key)} }

// joins reports whether a call can join another, and be joined.
func joins(req *store.TakeRequest) bool {
	return req.Terms != nil && req.Terms.Mode == store.Wait && req.Terms.Name != ""
}

// Same is the waiter that a call with WAIT joins; nil: it stands by itself.
func (r *Room[W]) Same(req *store.TakeRequest) (same W) {
	if !joins(req) {
		return same
	}
	want := wantOf(req)
	r.mu.Lock()
	first := r.named[name{want.name, string(req.Calls[0].Key)}]
	r.mu.Unlock()
	if first == same {
		return same
	}
	policies, _, err := r.policiesOf(req.Calls)
	if w := first.waiter(); err != nil || w.want != want || !w.sameLimits(req.Calls, policies) {
		return same
	}
	return first
}

// Know lets others join a waiter that stands in a Line, if they can join no other under its name.
func (r *Room[W]) Know(as W) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.know(as)
}

func (r *Room[W]) know(as W) {
	w := as.waiter()
	if none := *new(W); joins(w.Request) && r.named[w.name()] == none {
		r.named[w.name()], w.known = as, true
	}
}

func (r *Room[W]) forget(w *Waiter[W]) {
	if w.known {
		delete(r.named, w.name())
		w.known = false
	}
}

// Join makes a waiter be answered with another.
func (r *Room[W]) Join(as, first W) {
	as.waiter().With = first
	f := first.waiter()
	f.Joined = append(f.Joined, as)
}

// Part takes one that has joined another away from it.
func (r *Room[W]) Part(as W) {
	w := as.waiter()
	f := w.With.waiter()
	f.Joined = slices.DeleteFunc(f.Joined, func(j W) bool { return j == as })
	w.With = *new(W)
}

// HandOver gives what a waiter is known by, and its ticket, to the first that has joined it: that is to have its place in the Line. next is
// nil if there is none.
func (r *Room[W]) HandOver(as W) (next W) {
	w := as.waiter()
	if len(w.Joined) == 0 {
		return next
	}
	next = w.Joined[0]
	n := next.waiter()
	n.With, n.Joined, w.Joined = *new(W), w.Joined[1:], nil
	for _, j := range n.Joined {
		j.waiter().With = next
	}
	n.Ticket, n.Access.NowNS = w.Ticket, w.Access.NowNS
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(w)
	r.know(next)
	return next
}
