package waiting

import (
	"bytes"
	"slices"
	"time"

	"celld/store"
)

// Waiter is a call that waits, or a reservation behind such calls. A store embeds it in its own type of a waiter.
type Waiter[W any] struct {
	Request *store.TakeRequest // the caller's, who gets it back when the wait is over
	Calls   []store.Call       // what it asks for, under the present limits
	Access  store.Access       // at its arrival
	Waker   store.Waker        // nil: a reservation
	Timer   *time.Timer        // ends with the wait; nil: none

	Ticket    uint64 // its place in each Line: the lowest goes first
	Leader    W      // that it is coalesced with; nil: it stands by itself
	Followers []W    // that are coalesced with it

	want       want
	named      bool   // some of Calls are of policies
	version    uint64 // of the policies, when they were looked up
	registered bool   // repeats find it by its name
	left       bool
}

// Member is a store's waiter: a pointer to a struct that embeds Waiter.
type Member[W any] interface {
	comparable
	waiter() *Waiter[W]
}

func (w *Waiter[W]) waiter() *Waiter[W] { return w }

// Left reports whether the wait is over.
func (w *Waiter[W]) Left() bool { return w.left }

// want is what a call asks for, beside its limits.
type want struct {
	cost    int64
	leaseNS int64
	upTo    bool
	bound   bool
	name    string
}

func wantOf(r *store.TakeRequest) want {
	w := want{cost: r.Cost, upTo: r.UpTo}
	if t := r.Terms; t != nil {
		w.leaseNS, w.bound, w.name = t.LeaseNS, t.Bound, t.Name
	}
	return w
}

// tell answers a waiter that waits no longer. A reservation has been answered already.
func (w *Waiter[W]) tell(answer *store.TakeRequest) {
	if w.Waker == nil {
		return
	}
	if r := w.Request; r != answer {
		if len(r.Calls) != len(answer.Calls) { // see Refresh
			r.Calls = slices.Clone(answer.Calls)
		}
		for i := range answer.Calls {
			key := r.Calls[i].Key
			r.Calls[i] = answer.Calls[i]
			r.Calls[i].Key = key
		}
		r.Taken, r.Err = answer.Taken, answer.Err
		r.Terms.WaitNS, r.Terms.PassNS, r.Terms.Lease = 0, 0, 0
		if t := answer.Terms; t != nil {
			r.Terms.PassNS, r.Terms.Lease = t.PassNS, t.Lease
			if r.Terms.Mode == store.Reserve {
				r.Terms.WaitNS = t.WaitNS
			}
		}
	}
	w.Waker.Wake()
}

// End answers a waiter that has left with an error.
func (w *Waiter[W]) End(why error) {
	w.Request.Taken, w.Request.Err = store.Taken{}, why
	w.Waker.Wake()
}

// AsksAs reports whether both ask for the same.
func (w *Waiter[W]) AsksAs(as *Waiter[W]) bool {
	return w.want == as.want && w.sameLimits(as.Calls)
}

// sameLimits reads only keys, what rules see, limits and costs: another goroutine may write the decisions meanwhile.
func (w *Waiter[W]) sameLimits(calls []store.Call) bool {
	if len(w.Calls) != len(calls) {
		return false
	}
	for i := range calls {
		a, b := &w.Calls[i], &calls[i]
		switch {
		case !bytes.Equal(a.Key, b.Key), a.Seen != b.Seen, (a.Policy == nil) != (b.Policy == nil), a.Own != b.Own, a.Cost != b.Cost:
			return false
		case a.Policy == nil && *a.Limit != *b.Limit:
			return false
		case a.Policy != nil && (a.Policy.Policy.Name != b.Policy.Policy.Name || !a.Limit.Alike(b.Limit.Shape)):
			return false
		}
	}
	return true
}
