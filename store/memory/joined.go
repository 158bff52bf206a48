package memory

import (
	"bytes"
	"celld/store"
	"slices"
)

// A call that waits under a name of a lease may be asked again, by a client that has connected anew. If it asks for the same it joins
// the first: it is answered when that is, with the same. When the first goes, the next takes its place in the queue. One that asks for
// something else under that name waits by itself, and when its turn comes it is answered as any repeat.

// namedWait is what a call that waits is found by: its lease's name, under the key that the lease will be under.
type namedWait struct {
	name [2]uint64
	key  string
}

// namedIn is where a call that waits under a name is known, nil if it has none.
func (r *pending) namedIn() (*shard, namedWait) {
	lead := leadOf(r.calls)
	if r.Terms == nil || r.Terms.Name == "" || lead == nil {
		return nil, namedWait{}
	}
	return lead.sh, namedWait{nameOf(r.Terms.Name), string(lead.Key)}
}

// sameThatWaits is the waiter that a call joins, nil if it stands by itself.
func (r *pending) sameThatWaits() *waiter {
	sh, name := r.namedIn()
	if sh == nil {
		return nil
	}
	if w := sh.named[name]; w != nil && w.request.asksAs(r) {
		return w
	}
	return nil
}

// asksAs reports whether both ask for the same.
func (r *pending) asksAs(as *pending) bool {
	return r.Cost == as.Cost && r.UpTo == as.UpTo && r.Terms.LeaseNS == as.Terms.LeaseNS && r.Terms.Bound == as.Terms.Bound &&
		slices.EqualFunc(r.Calls, as.Calls, func(a, b store.Call) bool {
			return bytes.Equal(a.Key, b.Key) && a.Policy == b.Policy && (a.Policy != 0 || *a.Limit == *b.Limit)
		})
}

// makeKnown has others join the waiter, which is in a queue.
func (w *waiter) makeKnown() {
	sh, name := w.request.namedIn()
	if sh == nil || sh.named[name] != nil {
		return
	}
	if sh.named == nil {
		sh.named = make(map[namedWait]*waiter)
	}
	sh.named[name] = w
	w.knownIn, w.known = sh, name
}

func (w *waiter) makeUnknown() {
	if w.knownIn != nil {
		delete(w.knownIn.named, w.known)
		w.knownIn = nil
	}
}

func (w *waiter) join(first *waiter) {
	w.with = first
	first.joined = append(first.joined, w)
}

// part has one that has joined another stand with it no longer.
func (w *waiter) part() {
	first := w.with
	first.joined = slices.DeleteFunc(first.joined, func(j *waiter) bool { return j == w })
	w.with = nil
}

// handOver gives the waiter's place in its queue to the first that has joined it, and reports whether there is one.
func (w *waiter) handOver() bool {
	if len(w.joined) == 0 {
		return false
	}
	next := w.joined[0]
	next.joined, w.joined = w.joined[1:], nil
	for _, j := range next.joined {
		j.with = next
	}
	next.with, next.ticket, next.access.NowNS = nil, w.ticket, w.access.NowNS
	w.queue.replace(w, next)
	next.knownIn, next.known, w.knownIn = w.knownIn, w.known, nil
	if next.knownIn != nil {
		next.knownIn.named[next.known] = next
	}
	return true
}

// replace puts another waiter in the place of one.
func (q *queue) replace(w, by *waiter) {
	by.queue, by.next, by.prev, by.cost = q, w.next, w.prev, w.cost
	if w.prev == nil {
		q.first = by
	} else {
		w.prev.next = by
	}
	if w.next == nil {
		q.last = by
	} else {
		w.next.prev = by
	}
	w.queue, w.next, w.prev = nil, nil, nil
}

// tell answers a waiter that is in no queue any more.
func (w *waiter) tell(t store.Taken, err error) {
	if w.waker != nil {
		w.request.Taken, w.request.Err = t, err
		w.waker.Wake()
	}
}

// tellJoined answers one that has joined another as that.
func (w *waiter) tellJoined(as *pending, t store.Taken, err error) {
	for i := range as.Calls {
		w.request.Calls[i].Decision = as.Calls[i].Decision
	}
	w.request.Terms.Lease, w.request.Terms.WaitNS = as.Terms.Lease, as.Terms.WaitNS
	w.with = nil
	w.gone()
	w.tell(t, err)
}
