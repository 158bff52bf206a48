package cell

import "encoding/binary"

// A lease's links hold the names of keys in pieces of 16 bytes: each name after its length and 1.

// LinkNames returns the pieces that hold names.
func LinkNames(names [][]byte) (pieces [][2]uint64) {
	var b []byte
	for _, name := range names {
		b = append(binary.AppendUvarint(b, uint64(len(name))+1), name...)
	}
	for len(b) > 0 {
		var piece [16]byte
		b = b[copy(piece[:], b):]
		pieces = append(pieces, [2]uint64{binary.BigEndian.Uint64(piece[:]), binary.BigEndian.Uint64(piece[8:])})
	}
	return pieces
}

// NamesIn reads the names in pieces. readable is false if they end in the middle of a name; names then has those before it.
func NamesIn(pieces [][2]uint64) (names [][]byte, readable bool) {
	var b []byte
	for _, piece := range pieces {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, piece[0]), piece[1])
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
