package resp

import (
	"bytes"
	"hash/maphash"
	"slices"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/wire"
	"celld/store"
)

// form is a call without its keys: what it asks for, and how it is answered.
type form struct {
	row        *command.Row
	head, tail []byte // what stands before the key's length and after the key; no head: it is not kept in forms
	next       *form  // that came after it the last time

	// Of CL.THROTTLE and GCRA.
	limit    cell.Bucket
	quantity int64
	allowed  []byte // the start of the reply, up to `remaining`; none for GCRA
	limited  []byte

	// Of limits that are named or literals.
	limits  []takeLimit
	call    takeCall
	reply   func(s *Session, f *form, r *store.TakeRequest)
	version uint64 // of the policies
	logMax  int64
}

// reset has a form be none, and keeps its memory.
func (f *form) reset(row *command.Row) {
	*f = form{row: row, next: f, head: f.head[:0], tail: f.tail[:0], allowed: f.allowed[:0], limited: f.limited[:0], limits: f.limits[:0]}
}

// isTake says that the store is asked by a TakeRequest.
func (f *form) isTake() bool { return len(f.limits) > 0 }

// answers returns a copy that answers, when this one may be another form already.
func (f *form) answers() *form {
	kept := *f
	kept.head, kept.tail, kept.limits = nil, nil, slices.Clone(f.limits)
	kept.allowed, kept.limited = slices.Clone(f.allowed), slices.Clone(f.limited)
	return &kept
}

// forms are the calls that were met lately, without their keys, which is what a service sends: it asks a few limits for many
// users. The bytes before the key's length and those after the key are compared with those of earlier calls, and where they
// are the same nothing of them is parsed again.
//
// The form that followed the last one when that was last met is tried first, then the other of the last two. Any other is found
// by a hash of what follows the key, so that with many in turn each is still known: when there were four, and five limits took turns, each call was parsed, and
// took 250 ns more.
type forms struct {
	seed maphash.Seed
	last *form
	prev *form        // another, before last
	sets [64]struct { // by hash
		ways [2]*form
		next uint8 // to be forgotten for another
	}

	// Those that have been forgotten, to read others into. A batch may still hold them: so the next to be used is the one that was
	// forgotten before more calls than there are in a batch.
	spares [maxBatch + 1]*form
	spare  int
}

// maxForm is the longest form that is kept, in bytes.
const maxForm = 1 << 10

func newForms() *forms {
	fs := &forms{seed: maphash.MakeSeed(), last: &form{}}
	fs.last.reset(nil)
	fs.prev = fs.last
	return fs
}

// match finds the key of the call at the start of data, and its length in bytes, where it has this form.
func (f *form) match(data []byte, maxBulk int) (key []byte, n int) {
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

// find returns the form of a whole frame, or reads it from its arguments. It is nil for what cannot be in a batch: other
// commands, calls that are wrong, those that are large, of several keys, or wait or hold a lease.
func (fs *forms) find(s *Session, frame []byte, args [][]byte) *form {
	if len(args) < 3 {
		return nil
	}
	head := 1 + digits(len(args)) + 2 + 1 + digits(len(args[0])) + 2 + len(args[0]) + 2 + 1
	keyEnd := head + digits(len(args[1])) + 2 + len(args[1])
	tail := frame[keyEnd:]
	if head+len(tail) > maxForm {
		return nil
	}
	set := &fs.sets[maphash.Bytes(fs.seed, tail)%uint64(len(fs.sets))]
	way := -1
	for i, f := range set.ways {
		if f != nil && bytes.Equal(f.tail, tail) && bytes.Equal(f.head, frame[:head]) {
			if !f.stale(s) {
				return f
			}
			way = i
		}
	}
	row := s.srv.commands.Find(args[0])
	if row == nil || row.Flags&command.Decides == 0 || row.Keys.Counted || reader(row) == nil || big(args) || len(args) < -row.Arity {
		return nil
	}
	f := fs.spares[fs.spare]
	if f == nil {
		f = &form{}
		fs.spares[fs.spare] = f
	}
	if f.reset(row); reader(row)(s, f, args) != "" || f.call.hasTerms {
		return nil
	}
	f.head, f.tail = append(f.head, frame[:head]...), append(f.tail, tail...)
	if way < 0 {
		way = int(set.next)
		set.next ^= 1
	}
	if old := set.ways[way]; old != nil {
		old.head = old.head[:0] // others lead to it, and it may not be met any more
	}
	fs.spares[fs.spare], set.ways[way] = set.ways[way], f
	fs.spare = (fs.spare + 1) % len(fs.spares)
	return f
}

// met notes that a call had this form.
func (fs *forms) met(f *form) {
	if fs.last.next != f {
		fs.last.next = f
	}
	if fs.last != f {
		fs.prev, fs.last = fs.last, f
	}
}

// other is one of the last two forms, but this.
func (fs *forms) other(f *form) *form {
	if f == fs.last {
		return fs.prev
	}
	return fs.last
}

// stale says that limits have changed which the form names.
func (f *form) stale(s *Session) bool {
	return f.isTake() && (f.version != s.srv.store.PoliciesVersion() || f.logMax != s.srv.cfg.LogMax.Get())
}

func digits(n int) int {
	d := 1
	for ; n > 9; n /= 10 {
		d++
	}
	return d
}
