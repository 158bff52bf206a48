package resp

import (
	"bytes"
	"slices"
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/transport"
	"celld/store"
)

// maxBatch is how many calls of a pipeline are decided together. The store overlaps the cache misses of a batch; more than 64
// gain nothing, as a core has fewer misses in flight.
const maxBatch = store.MaxTakes

// mostCalls is how many limits a batch may have in all: 64 KB of calls.
const mostCalls = 256

// mostKept is how much room for keys a batch keeps when it is over.
const mostKept = 16 << 10

// batch is what the limiter is asked at once: one call, or some of a pipeline that have one command.
//
// With redis-benchmark -P 128 on 50 connections, that and forms took a CL.THROTTLE from 245 to 145 ns of CPU (PING of
// redis-server beside it: 220) and a CL.TAKE from 370 to 200.
type batch struct {
	row       *command.Row
	throttles []store.Request // these, or the next
	takes     []store.TakeRequest
	calls     []store.Call // of takes; more than one batch needs are made when it is full
	used      int          // of calls
	forms     []*form      // of the requests
	n         int
	hashed    bool   // by the server's store
	kept      []byte // of keys

	// Where the limiter answers later.
	tr       transport.Conn
	may      store.Right // of the user who asked
	answered atomic.Bool
	muted    bool        // the command is not to be answered
	last     *form       // of which there is a copy
	lone     bool        // it is of one call, and nobody's afterwards
	waits    bool        // with WAIT
	sinceNS  int64       // when it began to wait; 0: it does not
	gone     atomic.Bool // its session has gone before the answer was there
	srv      *service    // when it is gone
}

// Wake is called by the limiter when it has answered.
func (b *batch) Wake() {
	tr := b.tr // when the answer is seen, b may be another's
	b.answered.Store(true)
	if b.lone && b.gone.CompareAndSwap(true, false) {
		later := &b.srv.later
		later.givingBack.Add(1)
		go func() { // as the limiter may hold locks
			defer later.givingBack.Add(-1)
			b.giveBack()
		}()
	}
	tr.Wake()
}

func newBatch() *batch { return &batch{forms: make([]*form, maxBatch)} }

// newLone returns a batch for one call that may wait or hold a lease. The limiter may keep all of it, and so may who ends the wait
// when it is over: it is not used again.
func newLone(waits bool) *batch { return &batch{forms: make([]*form, 1), lone: true, waits: waits} }

// own gives the call of a lone batch terms and keys that nobody else changes.
func (b *batch) own(f *form) {
	r, terms := &b.takes[0], f.call.terms
	r.Terms = &terms
	for i := range r.Calls {
		if i > 0 && !f.row.Keys.Counted {
			r.Calls[i].Key = r.Calls[0].Key
		} else {
			r.Calls[i].Key = bytes.Clone(r.Calls[i].Key)
		}
	}
}

// keepKeys has the batch have its keys by itself, as CL.TOP needs those of denied calls when the limiter has answered. Until then the
// limiter has the requests, and the session's buffer may go on.
func (b *batch) keepKeys() {
	b.kept = b.kept[:0]
	keep := func(key []byte) []byte {
		from := len(b.kept)
		b.kept = append(b.kept, key...)
		return b.kept[from:len(b.kept):len(b.kept)]
	}
	for i := range b.throttles {
		b.throttles[i].Key = keep(b.throttles[i].Key)
	}
	for i := range b.takes {
		calls := b.takes[i].Calls
		given := calls[0].Key
		calls[0].Key = keep(given)
		for j := range calls[1:] {
			if c := &calls[j+1]; len(given) > 0 && len(c.Key) > 0 && &c.Key[0] == &given[0] {
				c.Key = calls[0].Key
			} else {
				c.Key = keep(c.Key)
			}
		}
	}
}

func (b *batch) reset() {
	b.row, b.n, b.used, b.throttles, b.takes = nil, 0, 0, b.throttles[:0], b.takes[:0]
	if cap(b.kept) > mostKept {
		b.kept = nil
	}
}

// key is that of a call that was added.
func (b *batch) key(i int) []byte {
	if len(b.takes) > 0 {
		return b.takes[i].Calls[0].Key
	}
	return b.throttles[i].Key
}

// cut removes the calls from i on.
func (b *batch) cut(i int) {
	b.takes, b.throttles = b.takes[:min(i, len(b.takes))], b.throttles[:min(i, len(b.throttles))] // one of them is empty
	if b.n = i; i == 0 {
		b.reset()
	}
}

// fits reports whether a call of this form may be added.
func (b *batch) fits(f *form) bool {
	return b.n == 0 || b.n < maxBatch && b.row == f.row && f.isTake() == (len(b.takes) > 0) && b.used+len(f.limits) <= mostCalls
}

// add appends a call that asks for a key.
func (b *batch) add(f *form, key []byte) {
	b.row, b.forms[b.n] = f.row, f
	if !f.isTake() {
		if b.n == cap(b.throttles) {
			b.throttles = slices.Grow(b.throttles, 1)
		}
		b.throttles = b.throttles[:b.n+1]
		r := &b.throttles[b.n]
		r.Key, r.Bucket, r.Quantity = key, f.limit, f.quantity
		b.n++
		return
	}
	calls := b.take(f, f.call.TakeOptions)
	for i, l := range f.limits {
		c := &calls[i]
		c.Key, c.Limit, c.Policy = key, l.Limit, l.policy
	}
}

// addPairs appends a call for several keys, each of which is followed by its limit.
func (b *batch) addPairs(f *form, pairs [][]byte) {
	b.row, b.forms[b.n] = f.row, f
	calls := b.take(f, f.call.TakeOptions)
	for i, l := range f.limits {
		calls[i] = store.Call{Key: pairs[2*i], Limit: l.Limit, Policy: l.policy}
	}
}

// take appends a request with as many calls as the form has limits.
func (b *batch) take(f *form, o store.TakeOptions) []store.Call {
	n := len(f.limits)
	if len(b.calls)-b.used < n {
		b.calls, b.used = make([]store.Call, max(n, min(2*len(b.calls), mostCalls))), 0
	}
	if b.n == cap(b.takes) {
		b.takes = slices.Grow(b.takes, 1)
	}
	b.takes = b.takes[:b.n+1]
	r := &b.takes[b.n]
	r.Calls, r.TakeOptions = b.calls[b.used:b.used+n:b.used+n], o
	b.used += n
	b.n++
	return r.Calls
}
