package rdb

import (
	"encoding/binary"
	"strconv"
)

// hashValue reads a hash field by field, in celld's form or as a listpack, Redis 7's form of short hashes. It skips all other forms, and a
// malformed listpack. Then bad is true, and the key is no limit.
func (r *reader) hashValue(kind byte, field func(name, value []byte)) (bad bool) {
	switch kind {
	case typeHash:
		var name []byte
		r.each(func() {
			name = append(name[:0], r.string()...)
			if value := r.string(); r.err == nil {
				field(name, value)
			}
		})
		return false
	case typeHashListpack:
		text := r.string()
		return r.err == nil && !eachOfListpack(text, field)
	}
	r.skipValue(kind)
	return true
}

// eachOfListpack calls fn for each pair of elements, and reports whether it could read them all. The format is described in
// Redis's listpack.c: a header of six bytes, and elements, each followed by the length of its code; 0xff ends it.
func eachOfListpack(b []byte, fn func(name, value []byte)) bool {
	if len(b) < 7 || binary.LittleEndian.Uint32(b) != uint32(len(b)) {
		return false
	}
	var name []byte
	named := false
	for b = b[6:]; len(b) > 0 && b[0] != 0xff; named = !named {
		element, n := listpackElement(b)
		back := backLength(n)
		if n == 0 || n+back >= len(b) {
			return false
		}
		if named {
			fn(name, element)
		} else {
			name = append(name[:0], element...)
		}
		b = b[n+back:]
	}
	return len(b) == 1 && !named
}

// backLength returns how many bytes hold the length that follows an element, 7 bits in each.
func backLength(n int) (bytes int) {
	for bytes = 1; n > 127 && bytes < 5; n >>= 7 {
		bytes++
	}
	return bytes
}

// listpackElement returns the element at the start of b, an integer as its digits, and the length of its code, or 0.
func listpackElement(b []byte) (element []byte, n int) {
	text := func(header, length int) ([]byte, int) {
		if len(b) < header+length {
			return nil, 0
		}
		return b[header : header+length], header + length
	}
	number := func(value int64, n int) ([]byte, int) { return strconv.AppendInt(nil, value, 10), n }
	first := b[0]
	switch {
	case first < 0x80:
		return number(int64(first), 1)
	case first < 0xc0:
		return text(1, int(first&0x3f))
	case len(b) < 2:
		return nil, 0
	case first < 0xe0:
		return number(int64(int16(uint16(first&0x1f)<<8|uint16(b[1]))<<3>>3), 2)
	case first < 0xf0:
		return text(2, int(first&0x0f)<<8|int(b[1]))
	}
	size := 0 // bytes of the number, or of the text's length
	switch first {
	case 0xf1:
		size = 2
	case 0xf2:
		size = 3
	case 0xf0, 0xf3:
		size = 4
	case 0xf4:
		size = 8
	}
	if size == 0 || len(b) < 1+size {
		return nil, 0
	}
	var bytes [8]byte
	copy(bytes[:], b[1:1+size])
	value := binary.LittleEndian.Uint64(bytes[:])
	if first == 0xf0 {
		if value > uint64(len(b)) {
			return nil, 0
		}
		return text(5, int(value))
	}
	unused := 64 - 8*size
	return number(int64(value<<unused)>>unused, 1+size)
}
