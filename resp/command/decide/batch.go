package decide

import (
	"slices"

	"celld/cell"
	"celld/resp/command"
	"celld/store"
)

// Batch is the calls that the limiter decides at once: one, or up to store.MaxTakes of a pipeline that have one command. The store overlaps
// the cache misses of a batch; more than 64 gain nothing, as a core has fewer misses in flight. The zero value is empty.
//
// With redis-benchmark -P 128 on 50 connections, batches and shapes took a CL.THROTTLE from 245 to 145 ns of CPU (PING of redis-server
// beside it: 220) and a CL.TAKE from 370 to 200.
type Batch struct {
	shapes    []*Shape            // of the requests
	throttles []store.Request     // these,
	takes     []store.TakeRequest // or these,
	counts    []store.CountRequest
	calls     []store.Call // of takes; more than one batch needs are made when it is full
	used      int          // of calls
	hashed    bool         // by the server's table
	kept      []byte       // of keys
}

// mostCalls is how many limits a batch may have in all: 64 KB of calls.
const mostCalls = 256

// mostKept is how much room for keys a batch keeps when it is over.
const mostKept = 16 << 10

// Len is how many calls the batch has, and Work how many limits are to be looked at as well.
func (b *Batch) Len() int  { return len(b.shapes) }
func (b *Batch) Work() int { return len(b.shapes) + b.used }

// Row is that of the calls.
func (b *Batch) Row() *command.Row { return b.shapes[0].row }

// Take is the first request of a batch whose calls name limits, with its answer once the batch is decided.
func (b *Batch) Take() *store.TakeRequest { return &b.takes[0] }

// Takes are all of them.
func (b *Batch) Takes() []store.TakeRequest { return b.takes }

// Key is that of a call that was added.
func (b *Batch) Key(i int) []byte {
	switch {
	case len(b.takes) > 0:
		return b.takes[i].Calls[0].Key
	case len(b.counts) > 0:
		return b.counts[i].Key
	}
	return b.throttles[i].Key
}

// Cut removes the calls from i on.
func (b *Batch) Cut(i int) {
	b.takes, b.throttles, b.counts = // two of them are empty
		b.takes[:min(i, len(b.takes))], b.throttles[:min(i, len(b.throttles))], b.counts[:min(i, len(b.counts))]
	if b.shapes = b.shapes[:i]; i == 0 {
		b.reset()
	}
}

func (b *Batch) reset() {
	b.shapes, b.throttles, b.takes, b.counts, b.used = b.shapes[:0], b.throttles[:0], b.takes[:0], b.counts[:0], 0
	if cap(b.kept) > mostKept {
		b.kept = nil
	}
}

// Changes is false where all calls have only looked (PEEK).
func (b *Batch) Changes() bool {
	return len(b.takes) == 0 || slices.ContainsFunc(b.takes, func(r store.TakeRequest) bool { return r.Mode != cell.Peek })
}

// fits reports whether a call of this shape may be added.
func (b *Batch) fits(f *Shape) bool {
	return len(b.shapes) == 0 || b.shapes[0].row == f.row && f.isTake() == (len(b.takes) > 0) && b.used+len(f.limits) <= mostCalls
}

// Add appends a call that asks for a key.
func (b *Batch) Add(f *Shape, key []byte) {
	n := len(b.shapes)
	b.shapes = append(b.shapes, f)
	if f.isTake() {
		calls := b.addTake(f)
		for i, l := range f.limits {
			c := &calls[i]
			c.Key, c.Limit, c.Policy, c.Own, c.Cost = key, l.Limit, l.policy, l.own, l.cost
		}
		return
	}
	if f.counts {
		if n == cap(b.counts) {
			b.counts = slices.Grow(b.counts, 1)
		}
		b.counts = b.counts[:n+1]
		r := &b.counts[n]
		r.Key, r.Count, r.Value, r.Added, r.Met, r.Err = key, f.count, 0, 0, false, nil
		return
	}
	if n == cap(b.throttles) {
		b.throttles = slices.Grow(b.throttles, 1)
	}
	b.throttles = b.throttles[:n+1]
	r := &b.throttles[n]
	r.Key, r.Bucket, r.Quantity = key, f.bucket, f.quantity
}

// AddCall appends a call, which may be for several keys, each of which is followed by its limit.
func (b *Batch) AddCall(f *Shape, args [][]byte) {
	b.Add(f, args[1])
	if f.row.Keys.Counted {
		calls := b.takes[len(b.takes)-1].Calls
		for i := range calls {
			calls[i].Key = args[2+2*f.limits[i].pair]
		}
	}
}

// addTake appends a request with as many calls as the shape has limits.
func (b *Batch) addTake(f *Shape) []store.Call {
	n := len(f.limits)
	if len(b.calls)-b.used < n {
		b.calls, b.used = make([]store.Call, max(n, min(2*len(b.calls), mostCalls))), 0
	}
	if len(b.takes) == cap(b.takes) {
		b.takes = slices.Grow(b.takes, 1)
	}
	b.takes = b.takes[:len(b.takes)+1]
	r := &b.takes[len(b.takes)-1]
	r.Calls, r.TakeOptions = b.calls[b.used:b.used+n:b.used+n], f.TakeOptions
	if f.hasTerms {
		terms := f.terms
		r.Terms = &terms
	}
	b.used += n
	return r.Calls
}

// keepKeys copies the keys into the batch, as CL.TOP needs those of denied calls when the limiter has answered, and the buffer of the
// connection may go on until then.
func (b *Batch) keepKeys() {
	b.kept = b.kept[:0]
	keep := func(key []byte) []byte {
		from := len(b.kept)
		b.kept = append(b.kept, key...)
		return b.kept[from:len(b.kept):len(b.kept)]
	}
	for i := range b.throttles {
		b.throttles[i].Key = keep(b.throttles[i].Key)
	}
	for i := range b.counts {
		b.counts[i].Key = keep(b.counts[i].Key)
	}
	for i := range b.takes {
		calls, several := b.takes[i].Calls, b.shapes[i].row.Keys.Counted
		for j := range calls {
			if j == 0 || several {
				calls[j].Key = keep(calls[j].Key)
			} else {
				calls[j].Key = calls[0].Key
			}
		}
	}
}

// KeepShapes copies the shapes, as those of the Decider may be others when the limiter has answered.
func (b *Batch) KeepShapes() {
	var last *Shape // of which there is a copy
	for i, f := range b.shapes {
		if f == last {
			b.shapes[i] = b.shapes[i-1]
		} else {
			b.shapes[i], last = f.forReplies(), f
		}
	}
}
