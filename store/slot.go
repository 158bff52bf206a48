package store

import (
	"math"
	"sync/atomic"
)

const (
	never  = math.MaxUint64 // an end that no int64 instant reaches
	noSlot = 0              // no slot has this number

	linkBits = 28
	linkMask = 1<<linkBits - 1
	maxSlots = 1 << linkBits // of one shard: 12 GB of slots

	prevMask  = linkMask << linkBits
	byteShift = 2 * linkBits // of the byte that both words of links have left
)

// slot is a key and its state, and where it stands in the shard's structures: six words, none of them a pointer. Links
// are slot numbers of 28 bits, so that two fit a word and leave a byte for something else.
//
// A slot of 48 bytes may lie in two cache lines. The first and the last word, which are the key's, are in both, so a batch
// touches these two ahead.
type slot struct {
	key0      uint64 // bytes 0..7 of the key
	tat       uint64
	touchedNS int64  // last use, for OBJECT IDLETIME; of a key that holds limits the number of its first tally
	use       uint64 // next (older) and previous (younger) in the order of use; flags
	end       uint64 // next and previous in a bucket of the wheel; length of the key, or hugeKey
	key1      uint64 // bytes 8..15 of the key; of a longer one bytes 8..11, and the number of its first tail
}

// The flags of slot.use.
const (
	flagList      = 3 << byteShift       // which list: free, probation, protected or spent
	flagJournaled = 1 << (byteShift + 2) // is in the journal's list. Outlasts the key, as the number in the list does
	flagNoExpiry  = 1 << (byteShift + 3) // State.ExpiryNS is NoExpiry
	flagExpiry    = 1 << (byteShift + 4) // State.ExpiryNS is in table.expiries
	flagFirst     = 1 << (byteShift + 5) // is the first in its bucket of the wheel, and end's previous is that bucket
	flagLimits    = 1 << (byteShift + 6) // holds limits, and tat is when the last of them ends
	flagsOfState  = flagNoExpiry | flagExpiry
)

func (e *slot) older() uint32   { return uint32(e.use) & linkMask }
func (e *slot) younger() uint32 { return uint32(e.use>>linkBits) & linkMask }

func (e *slot) setOlder(n uint32)   { e.use = e.use&^linkMask | uint64(n) }
func (e *slot) setYounger(n uint32) { e.use = e.use&^prevMask | uint64(n)<<linkBits }

func (e *slot) list() listName { return listName(e.use >> byteShift & 3) }

func (e *slot) spent() bool { return e.list() == spentList }

func (e *slot) nextEnd() uint32 { return uint32(e.end) & linkMask }
func (e *slot) prevEnd() uint32 { return uint32(e.end>>linkBits) & linkMask }

func (e *slot) setNextEnd(n uint32) { e.end = e.end&^linkMask | uint64(n) }
func (e *slot) setPrevEnd(n uint32) { e.end = e.end&^prevMask | uint64(n)<<linkBits }

// keyLen is the length of the key, or hugeKey.
func (e *slot) keyLen() int { return int(e.end >> byteShift) }

// touch reads the two words of the key, without any lock. See slot.
func (e *slot) touch() uint64 { return atomic.LoadUint64(&e.key0) + atomic.LoadUint64(&e.key1) }
