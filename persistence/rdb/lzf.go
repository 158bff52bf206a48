package rdb

// unpackLZF appends the unpacked bytes, size of them, to an empty out. ok is false if packed is malformed. LZF consists of
// runs of plain bytes and references to earlier output. The format is liblzf's. These 30 lines are less than another dependency.
func unpackLZF(out, packed []byte, size int) (_ []byte, ok bool) {
	for len(packed) > 0 {
		control := int(packed[0])
		packed = packed[1:]
		if control < 32 {
			n := control + 1
			if n > len(packed) {
				return out, false
			}
			out, packed = append(out, packed[:n]...), packed[n:]
			continue
		}
		n := control >> 5
		if n == 7 && len(packed) > 0 {
			n += int(packed[0])
			packed = packed[1:]
		}
		if len(packed) == 0 {
			return out, false
		}
		from := len(out) - (control&0x1f<<8 | int(packed[0])) - 1
		packed = packed[1:]
		if from < 0 || len(out)+n+2 > size {
			return out, false
		}
		for i := range n + 2 { // the source may overlap with what is written
			out = append(out, out[from+i])
		}
	}
	return out, len(out) == size
}
