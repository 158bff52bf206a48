package lease

import (
	"encoding/binary"
	"slices"
)

// Links returns the names of the links of a lease that has not expired, in the order in which they were added.
func (s Set) Links(id uint64, nowNS int64) (names [][2]uint64, found bool) {
	n := s.find(byID, [2]uint64{id}, s.liveFrom(nowNS))
	return s.linksOf(n), n != 0
}

// AllLinks yields the names of the links of each lease that has some, as Links does for one. whole is false where links stand behind no
// lease of theirs. A text that somebody has written may put another lease between them, or lack theirs.
func (s Set) AllLinks(yield func(names [][2]uint64, whole bool) bool) {
	for n := s.first(); n != 0; n = s.next(n) {
		names := s.linksOf(n)
		if s.isLink(n) {
			names = [][2]uint64{s.name(n)}
		}
		if len(names) > 0 && !yield(names, !s.isLink(n)) {
			return
		}
	}
}

func (s Set) linksOf(n node) (names [][2]uint64) {
	for link := s.firstLink(n); link != 0; link = s.next(link) {
		names = append(names, s.name(link))
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
