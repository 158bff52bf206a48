package decide

import (
	"bytes"
	"hash/maphash"

	"celld/resp/command"
	"celld/store"
)

// shapes is the shape cache: it keeps the shapes that were met lately. The bytes before the key's length and those after the key are
// compared with those of earlier calls, and where they are the same nothing of them is parsed again.
//
// The shape that followed the last one when that was last met is tried first, then the other of the last two. Any other is found by a hash
// of what follows the key, so that each is still known where many alternate: with four places for five limits that alternated, each call
// was parsed, and took 250 ns more.
type shapes struct {
	seed maphash.Seed
	last *Shape
	prev *Shape // another, before last
	sets [64]shapeSet

	// Those that have been forgotten, to read others into. A batch may still hold them: so the next to be used is the one that was
	// forgotten before more calls than there are in a batch.
	spares [store.MaxTakes + 1]*Shape
	spare  int
}

// shapeSet are shapes of one hash.
type shapeSet struct {
	ways [2]*Shape
	next uint8 // to be forgotten for another
}

// maxShape is the longest shape that is kept, in bytes.
const maxShape = 1 << 10

// split returns what stands before the key's length and after the key in a whole frame.
func split(frame []byte, args [][]byte) (head, tail []byte) {
	at := 1 + digits(len(args)) + 2 + 1 + digits(len(args[0])) + 2 + len(args[0]) + 2 + 1
	return frame[:at], frame[at+digits(len(args[1]))+2+len(args[1]):]
}

func digits(n int) int {
	d := 1
	for ; n > 9; n /= 10 {
		d++
	}
	return d
}

// find returns the shape of a whole frame, or reads it from its arguments. It is nil for calls that cannot be in a batch: other commands,
// and calls that are wrong or large, have several keys, wait, or hold a lease.
func (d *Decider) find(frame []byte, args [][]byte) *Shape {
	if len(args) < 3 && !(len(args) == 2 && len(args[0]) == len("incr")) { // the commands of two words that are gathered: INCR and DECR
		return nil
	}
	head, tail := split(frame, args)
	if len(head)+len(tail) > maxShape {
		return nil
	}
	set := &d.shapes.sets[maphash.Bytes(d.shapes.seed, tail)%uint64(len(d.shapes.sets))]
	way := set.find(head, tail)
	if way >= 0 && !d.stale(set.ways[way]) {
		return set.ways[way]
	}
	f := d.read(args)
	if f != nil {
		f.head, f.tail = append(f.head, head...), append(f.tail, tail...)
		d.shapes.keep(f, set, way)
	}
	return f
}

// find returns the place of a shape, or -1.
func (set *shapeSet) find(head, tail []byte) (way int) {
	for i, f := range set.ways {
		if f != nil && bytes.Equal(f.tail, tail) && bytes.Equal(f.head, head) {
			return i
		}
	}
	return -1
}

// read reads a call into the next of the spares. It is nil for a call that cannot be in a batch.
func (d *Decider) read(args [][]byte) *Shape {
	row := d.Commands.Find(args[0])
	if row == nil || batched[row.Name] == nil || len(args) < -row.Arity || command.Big(args) {
		return nil
	}
	spare := &d.shapes.spares[d.shapes.spare]
	if *spare == nil {
		*spare = &Shape{}
	}
	f := *spare
	if f.reset(row); batched[row.Name](&d.limits, f, args) != "" || f.hasTerms {
		return nil
	}
	return f
}

// keep puts the next of the spares into a set, whose shape in this way, or in one that is due if that is -1, is a spare from now on.
func (s *shapes) keep(f *Shape, set *shapeSet, way int) {
	if way < 0 {
		way = int(set.next)
		set.next ^= 1
	}
	old := set.ways[way]
	if old != nil {
		old.head = old.head[:0] // others lead to it, and it may not be met any more
	}
	s.spares[s.spare], set.ways[way] = old, f
	s.spare = (s.spare + 1) % len(s.spares)
}

// met notes that a call had this shape.
func (s *shapes) met(f *Shape) {
	if s.last.next != f {
		s.last.next = f
	}
	if s.last != f {
		s.prev, s.last = s.last, f
	}
}

// other is one of the last two shapes, but not f.
func (s *shapes) other(f *Shape) *Shape {
	if f == s.last {
		return s.prev
	}
	return s.last
}

// stale reports whether limits have changed that the shape names.
func (d *Decider) stale(f *Shape) bool { return f.isTake() && f.edition != d.Server.edition() }
