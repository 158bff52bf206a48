package store

import (
	"bytes"
	"encoding/binary"

	"celld/cell"
)

// The first key of a Take leads to the others: its lease has links, which hold their names. So a command may reach keys that it does not
// name. Its caller needs the same right to them, and reach is the one place that asks for it. Those who ask are Linked, for what ends or
// renews a lease; repeat, which hands out a lease that was taken before; and LimitState.Reach, for what shows or writes a state.

// Right says whether a caller may read or write a key, or both. nil: it may do everything with any. It is called under locks, so it must
// be quick and must not use the store.
type Right func(key []byte, reads, writes bool) bool

// NoRightError reports a key that a lease leads to, and to which the caller has no right. Nothing has changed.
type NoRightError struct{ Key []byte }

func (e *NoRightError) Error() string { return "no right to a key that a lease leads to" }

// reach returns a *NoRightError if the caller lacks a right to one of the keys.
func (may Right) reach(keys [][]byte, reads, writes bool) error {
	if may == nil {
		return nil
	}
	for _, key := range keys {
		if !may(key, reads, writes) {
			return &NoRightError{bytes.Clone(key)}
		}
	}
	return nil
}

// Reach returns a *NoRightError if the caller lacks a right to one of the keys that the leases of a state lead to, or another error if
// they do not say clearly where they lead.
func (l *LimitState) Reach(may Right, reads, writes bool) error {
	if may == nil || !l.Limit.HoldsLeases() {
		return nil
	}
	for names, whole := range cell.AllLinks(&l.State) {
		keys, readable := keysIn(names)
		if !whole || !readable {
			return errField
		}
		if err := may.reach(keys, reads, writes); err != nil {
			return err
		}
	}
	return nil
}

// links are the others' keys in pieces of 16 bytes: each key after its length and 1.
func (g *grant) links() (links [][2]uint64) {
	var b []byte
	for _, key := range g.others {
		b = append(binary.AppendUvarint(b, uint64(len(key))+1), key...)
	}
	for len(b) > 0 {
		var piece [16]byte
		b = b[copy(piece[:], b):]
		links = append(links, [2]uint64{binary.BigEndian.Uint64(piece[:]), binary.BigEndian.Uint64(piece[8:])})
	}
	return links
}

// keysIn reads what links has written, as far as it is readable.
func keysIn(links [][2]uint64) (keys [][]byte, readable bool) {
	var b []byte
	for _, piece := range links {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, piece[0]), piece[1])
	}
	for len(b) > 0 {
		n, width := binary.Uvarint(b)
		if n == 0 {
			return keys, width > 0
		}
		if n-1 > uint64(len(b)-width) {
			return keys, false
		}
		keys = append(keys, b[width:width+int(n-1)])
		b = b[width+int(n-1):]
	}
	return keys, true
}
