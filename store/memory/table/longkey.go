package table

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

const (
	InlineKey = 16  // the longest key that lies in its slot
	headBytes = 12  // of a longer one lie in it
	tailBytes = 28  // and so many in each of its tails: a key of 40 bytes takes one
	HugeKey   = 255 // the keyLen of keys so long or longer: they lie in keys.Huge, and their slot has the place there as that of a tail
)

// tail is a piece of a key that is longer than its slot holds, of tailSize: 48, another slot, would waste more on the
// keys of 17 to 60 bytes that are common, and places of all lengths could not be used for one another. The upper half of the last
// word is the number of the next tail.
type tail [4]atomic.Uint64

const (
	tailSize = 32 // and that of a hugeKey
	tailNext = 32 // bits
)

func (p *tail) link() uint32     { return uint32(p[3].Load() >> tailNext) }
func (p *tail) setLink(n uint32) { p[3].Store(p[3].Load()<<tailNext>>tailNext | uint64(n)<<tailNext) }

// tailWords are the words of a tail with the start of rest, without a link, and how much of rest they hold.
func tailWords(rest []byte) (words [4]uint64, n int) {
	if len(rest) < tailBytes {
		var piece [tailBytes]byte
		n = copy(piece[:], rest)
		rest = piece[:]
	} else {
		n = tailBytes
	}
	return [4]uint64{
		binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:]), binary.LittleEndian.Uint64(rest[16:]),
		uint64(binary.LittleEndian.Uint32(rest[24:])),
	}, n
}

// keys hold the parts of keys that lie outside the slots.
type keys struct {
	Tails arena[tail, *tail]
	Huge  arena[hugeKey, *hugeKey] // so rare that they are the collector's to follow
}

type hugeKey struct {
	key  []byte
	next uint32 // of a free place
}

func (p *hugeKey) link() uint32     { return p.next }
func (p *hugeKey) setLink(n uint32) { p.next = n }

// drop forgets all keys, and gives their memory back.
func (k *keys) drop() {
	k.Tails.drop()
	k.Huge.drop()
}

func inlineWords(key []byte) (key0, key1 uint64) {
	switch n := len(key); {
	case n >= InlineKey:
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

// Set stores the key of a new slot, except its length, which it returns as it stands in Slot.Info.
func (k *keys) Set(e *Slot, key []byte) (keyLen uint64) {
	key0, key1 := inlineWords(key)
	length := len(key)
	switch {
	case length >= HugeKey:
		length = HugeKey
		number, p := k.Huge.alloc()
		p.key = append([]byte(nil), key...)
		key1 = uint64(number) << 32
	case length > InlineKey:
		key1 = headWord(key)
		var last *tail
		for rest := key[headBytes:]; len(rest) > 0; {
			number, p := k.Tails.alloc()
			words, n := tailWords(rest)
			for i := range p {
				p[i].Store(words[i])
			}
			rest = rest[n:]
			if last == nil {
				key1 |= uint64(number) << 32
			} else {
				last.setLink(number)
			}
			last = p
		}
	}
	e.key0.Store(key0)
	e.key1.Store(key1)
	return uint64(length) << keyLenShift
}

// Is reports whether the slot's key is this one. Without the lock it may err. It is always false for keys in Huge.
func (k *keys) Is(e *Slot, key []byte) bool {
	if e.keyLen() != min(len(key), HugeKey) {
		return false
	}
	if len(key) == InlineKey { // the common length
		return e.key0.Load() == binary.LittleEndian.Uint64(key) && e.key1.Load() == binary.LittleEndian.Uint64(key[8:])
	}
	return k.isUncommon(e, key)
}

func (k *keys) isUncommon(e *Slot, key []byte) bool {
	if len(key) < InlineKey {
		key0, key1 := inlineWords(key)
		return e.key0.Load() == key0 && e.key1.Load() == key1
	}
	if e.key0.Load() != binary.LittleEndian.Uint64(key) || len(key) >= HugeKey {
		return false
	}
	key1 := e.key1.Load()
	if key1&(1<<32-1) != headWord(key) {
		return false
	}
	number := uint32(key1 >> 32)
	for rest := key[headBytes:]; ; {
		p := k.Tails.Peek(number)
		if p == nil {
			return false
		}
		words, n := tailWords(rest)
		link := p[3].Load()
		if p[0].Load() != words[0] || p[1].Load() != words[1] || p[2].Load() != words[2] || link<<tailNext>>tailNext != words[3] {
			return false
		}
		if rest = rest[n:]; len(rest) == 0 {
			return true
		}
		number = uint32(link >> tailNext)
	}
}

// isHuge reports whether a slot holds this key of Huge. The shard is locked.
func (k *keys) isHuge(e *Slot, key []byte) bool {
	return e.keyLen() == HugeKey && string(k.huge(e)) == string(key)
}

func (k *keys) huge(e *Slot) []byte { return k.Huge.At(uint32(e.key1.Load() >> 32)).key }

// View returns the slot's key, which is valid until that slot changes; longer ones are put together in scratch.
func (k *keys) View(e *Slot, scratch *[HugeKey]byte) []byte {
	length := e.keyLen()
	if length == HugeKey {
		return k.huge(e)
	}
	binary.LittleEndian.PutUint64(scratch[:], e.key0.Load())
	binary.LittleEndian.PutUint64(scratch[8:], e.key1.Load())
	if length > InlineKey {
		number := uint32(e.key1.Load() >> 32)
		for rest := scratch[headBytes:length]; len(rest) > 0; {
			var piece [32]byte
			p := k.Tails.At(number)
			for i := range p {
				binary.LittleEndian.PutUint64(piece[8*i:], p[i].Load())
			}
			rest = rest[copy(rest, piece[:tailBytes]):]
			number = p.link()
		}
	}
	return scratch[:length]
}

// Free gives back what lies outside the slot of its key.
func (k *keys) Free(e *Slot) {
	number := uint32(e.key1.Load() >> 32)
	switch length := e.keyLen(); {
	case length == HugeKey:
		k.Huge.At(number).key = nil
		k.Huge.release(k.Huge.free(number))
	case length > InlineKey:
		for number != 0 {
			next := k.Tails.At(number).link()
			k.Tails.release(k.Tails.free(number))
			number = next
		}
	}
}

// length is the length of the slot's key.
func (k *keys) length(e *Slot) int {
	if length := e.keyLen(); length != HugeKey {
		return length
	}
	return len(k.huge(e))
}

// The size of a slot is what a key costs.
var _ [48]byte = [unsafe.Sizeof(Slot{})]byte{}
