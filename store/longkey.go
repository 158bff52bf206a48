package store

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

const (
	inlineKey = 16  // the longest key that lies in its slot
	headBytes = 12  // of a longer one lie in it
	tailBytes = 28  // and so many in each of its tails: a key of 40 bytes takes one
	hugeKey   = 255 // the keyLen of keys so long or longer: they lie in table.huge
)

// tail is a piece of a key that is longer than its slot holds. 32 bytes: 48, another slot, would waste more on the
// keys of 17 to 60 bytes that are common, and places of all lengths could not be used for one another.
type tail struct {
	bytes [tailBytes]byte
	next  uint32
}

func (p *tail) link() *uint32 { return &p.next }

// keys are what a shard has of keys beside the slots.
type keys struct {
	tails arena[tail, *tail]
	huge  map[uint32][]byte // by slot. So rare that it is the collector's to follow
}

// drop forgets all keys, and gives their memory back.
func (k *keys) drop() {
	k.tails.drop()
	k.huge = nil
}

func inlineWords(key []byte) (key0, key1 uint64) {
	switch n := len(key); {
	case n >= inlineKey:
		return binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])
	case n >= 8: // the last 8 bytes, shifted so that those in key0 fall out
		return binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[n-8:]) >> (8 * (16 - n)) & (1<<(8*(n-8)) - 1)
	}
	for i, b := range key {
		key0 |= uint64(b) << (8 * i)
	}
	return key0, 0
}

// headWord is the key1 of a longer key, less the number of its tail.
func headWord(key []byte) uint64 { return uint64(binary.LittleEndian.Uint32(key[8:])) }

// set stores the key of a new slot.
func (k *keys) set(n uint32, e *slot, key []byte) {
	key0, key1 := inlineWords(key)
	length := len(key)
	switch {
	case length >= hugeKey:
		length = hugeKey
		if k.huge == nil {
			k.huge = make(map[uint32][]byte)
		}
		k.huge[n] = append([]byte(nil), key...)
	case length > inlineKey:
		key1 = headWord(key)
		var last *tail
		for rest := key[headBytes:]; len(rest) > 0; {
			number, p := k.tails.take()
			p.next = 0
			rest = rest[copy(p.bytes[:], rest):]
			if last == nil {
				key1 |= uint64(number) << 32
			} else {
				last.next = number
			}
			last = p
		}
	}
	e.end = e.end&(1<<byteShift-1) | uint64(length)<<byteShift
	atomic.StoreUint64(&e.key0, key0) // a batch may be touching them
	atomic.StoreUint64(&e.key1, key1)
}

// is reports whether the slot's key is this one.
func (k *keys) is(n uint32, e *slot, key []byte) bool {
	if e.keyLen() != min(len(key), hugeKey) {
		return false
	}
	if len(key) == inlineKey { // the common length
		return e.key0 == binary.LittleEndian.Uint64(key) && e.key1 == binary.LittleEndian.Uint64(key[8:])
	}
	return k.isUncommon(n, e, key)
}

func (k *keys) isUncommon(n uint32, e *slot, key []byte) bool {
	if len(key) < inlineKey {
		key0, key1 := inlineWords(key)
		return e.key0 == key0 && e.key1 == key1
	}
	if e.key0 != binary.LittleEndian.Uint64(key) {
		return false
	}
	if len(key) >= hugeKey {
		return string(k.huge[n]) == string(key)
	}
	if e.key1&(1<<32-1) != headWord(key) {
		return false
	}
	rest := key[headBytes:]
	for number := uint32(e.key1 >> 32); ; {
		p := k.tails.at(number)
		piece := min(len(rest), tailBytes)
		if string(p.bytes[:piece]) != string(rest[:piece]) {
			return false
		}
		if rest = rest[piece:]; len(rest) == 0 {
			return true
		}
		number = p.next
	}
}

// view returns the slot's key, which is valid until that slot changes; longer ones are put together in scratch.
func (k *keys) view(n uint32, e *slot, scratch *[hugeKey]byte) []byte {
	length := e.keyLen()
	if length == hugeKey {
		return k.huge[n]
	}
	binary.LittleEndian.PutUint64(scratch[:], e.key0)
	binary.LittleEndian.PutUint64(scratch[8:], e.key1)
	if length > inlineKey {
		number := uint32(e.key1 >> 32)
		for rest := scratch[headBytes:length]; len(rest) > 0; {
			p := k.tails.at(number)
			rest = rest[copy(rest, p.bytes[:]):]
			number = p.next
		}
	}
	return scratch[:length]
}

// free gives back what the slot's key has outside it.
func (k *keys) free(n uint32, e *slot) {
	switch length := e.keyLen(); {
	case length == hugeKey:
		delete(k.huge, n)
	case length > inlineKey:
		for number := uint32(e.key1 >> 32); number != 0; {
			next := k.tails.at(number).next
			k.tails.put(number)
			number = next
		}
	}
}

// length is the length of the slot's key.
func (k *keys) length(n uint32, e *slot) int {
	if length := e.keyLen(); length != hugeKey {
		return length
	}
	return len(k.huge[n])
}

// The size of a slot is what a key costs.
var _ [48]byte = [unsafe.Sizeof(slot{})]byte{}
