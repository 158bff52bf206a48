package decide

import (
	"bytes"
	"slices"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store"
)

// Shape is a call without its keys: what it asks for, and how it is answered.
type Shape struct {
	row        *command.Row
	head, tail []byte  // what stands before the key's length and after the key; no head: no call is recognised by it
	next       *Shape  // that came after it the last time
	limits     []limit // near the head, as each call that is gathered looks at their number: further down, that took 12 ns
	edition            // of the limits
	options

	// Of INCR and its kin, and of INCREX, which answers with a pair.
	counts, pair bool
	count        store.Count

	// Of CL.THROTTLE, whose limit is in numbers.
	bucket   cell.Bucket
	quantity int64
	allowed  []byte // the start of the reply, up to `remaining`
	limited  []byte

	// Of limits that are named or literals.
	counted decisions.Kind // of a call that is allowed; the kind after that is of one that is limited
	reply   func(out *command.Reply, f *Shape, r *store.TakeRequest)
}

// reset empties a shape, and keeps its memory.
func (f *Shape) reset(row *command.Row) {
	*f = Shape{row: row, next: f, head: f.head[:0], tail: f.tail[:0], allowed: f.allowed[:0], limited: f.limited[:0], limits: f.limits[:0],
		options: options{costs: f.costs[:0]}}
}

// Terms say how the call waits, and what it holds. A call that does neither has none.
func (f *Shape) Terms() *store.Terms {
	if !f.hasTerms {
		return nil
	}
	return &f.terms
}

// isTake reports whether the limiter is asked by a TakeRequest.
func (f *Shape) isTake() bool { return len(f.limits) > 0 }

// forReplies returns a copy for the replies, as the shape may become another meanwhile.
func (f *Shape) forReplies() *Shape {
	kept := *f
	kept.head, kept.tail, kept.limits = nil, nil, slices.Clone(f.limits)
	kept.allowed, kept.limited = slices.Clone(f.allowed), slices.Clone(f.limited)
	return &kept
}

// match finds the key of the call at the start of data, and its length in bytes, where it has this shape.
func (f *Shape) match(data []byte, maxBulk int) (key []byte, n int) {
	if len(f.head) == 0 || !bytes.HasPrefix(data, f.head) {
		return nil, 0
	}
	length, start, ok := wire.ReadLength(data, len(f.head))
	if !ok || length > maxBulk || len(data)-start < length || !bytes.HasPrefix(data[start+length:], f.tail) {
		return nil, 0
	}
	end := start + length
	return data[start:end:end], end + len(f.tail)
}
