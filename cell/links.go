package cell

import (
	"encoding/binary"
	"iter"
	"slices"
)

// Links are the names of the links of a lease that has not ended, in the order in which they were added.
func Links(st *State, id uint64, nowNS int64) (names [][2]uint64, found bool) {
	r := leases{st}
	n := r.find(byID, [2]uint64{id}, r.afterNS(nowNS))
	return r.linksOf(n), n != 0
}

// AllLinks yields the names of the links of each lease that has some, as Links does for one. whole is false where links stand behind no
// lease of theirs, as they may in a text that somebody has written: another lease may come between them, or theirs may go without them.
func AllLinks(st *State) iter.Seq2[[][2]uint64, bool] {
	return func(yield func(names [][2]uint64, whole bool) bool) {
		r := leases{st}
		for n := r.first(); n != 0; n = r.next(n) {
			names := r.linksOf(n)
			if r.isLink(n) {
				names = [][2]uint64{r.name(n)}
			}
			if len(names) > 0 && !yield(names, !r.isLink(n)) {
				return
			}
		}
	}
}

func (r leases) linksOf(n node) (names [][2]uint64) {
	for link := r.firstLink(n); link != 0; link = r.next(link) {
		names = append(names, r.name(link))
	}
	return names
}

// A lease's links hold the names of keys in pieces of 16 bytes: each name after its length and 1.

// LinkNames returns the pieces that hold names.
func LinkNames(names [][]byte) (pieces [][2]uint64) {
	var b []byte
	for _, name := range names {
		b = append(binary.AppendUvarint(b, uint64(len(name))+1), name...)
	}
	for piece := range slices.Chunk(b, 16) {
		pieces = append(pieces, pieceOf(append(piece, make([]byte, 16)...)))
	}
	return pieces
}

func pieceOf(b []byte) [2]uint64 {
	return [2]uint64{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func appendPiece(b []byte, piece [2]uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, piece[0]), piece[1])
}

// NamesIn reads the names in pieces. readable is false if they end in the middle of a name; names then has those before it.
func NamesIn(pieces [][2]uint64) (names [][]byte, readable bool) {
	var b []byte
	for _, piece := range pieces {
		b = appendPiece(b, piece)
	}
	for len(b) > 0 {
		n, width := binary.Uvarint(b)
		if n == 0 {
			return names, width > 0
		}
		if n-1 > uint64(len(b)-width) {
			return names, false
		}
		names = append(names, b[width:width+int(n-1)])
		b = b[width+int(n-1):]
	}
	return names, true
}
