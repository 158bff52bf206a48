package memory

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
// The first four words are all that a call without the lock looks at. They lie in one cache line in three slots of four.
type slot struct {
	key0 atomic.Uint64 // bytes 0..7 of the key
	key1 atomic.Uint64 // bytes 8..15 of the key; of a longer one bytes 8..11, and the number of its first tail
	tat  atomic.Uint64
	info atomic.Uint64 // flags; length of the key, or hugeKey; 48 bits more
	use  uint64        // next (older) and previous (younger) in the order of use; flagFirst
	end  uint64        // next and previous in a bucket of the wheel
}

// The flags of slot.info. What its low 48 bits have is the last use for OBJECT IDLETIME, in units of touchedUnit, and of a key
// that holds limits the number of its first tally.
const (
	flagBusy      = 1 << (48 + iota) // a call without the lock is changing the state
	flagProbation                    // the two are which list: free, probation, protected or spent
	flagProtected
	flagJournaled // is in the journal's list. Outlasts the key, as the number in the list does
	flagNoExpiry  // State.ExpiryNS is NoExpiry
	flagExpiry    // State.ExpiryNS is in table.expiries
	flagLimits    // holds limits, and tat is when the last of them ends
	flagWaited    // somebody waits for a state of the key

	flagList     = flagProbation | flagProtected
	flagsOfState = flagNoExpiry | flagExpiry

	touchedMask = 1<<48 - 1
	touchedUnit = 16 // bits: 65 µs

	keyLenShift = 56
	keyLenMask  = 0xff << keyLenShift
)

// flagFirst of slot.use says that it is the first in its bucket of the wheel, and end's previous is that bucket.
const flagFirst = 1 << byteShift

func (e *slot) older() uint32   { return uint32(e.use) & linkMask }
func (e *slot) younger() uint32 { return uint32(e.use>>linkBits) & linkMask }

func (e *slot) setOlder(n uint32)   { e.use = e.use&^linkMask | uint64(n) }
func (e *slot) setYounger(n uint32) { e.use = e.use&^prevMask | uint64(n)<<linkBits }

func (e *slot) nextEnd() uint32 { return uint32(e.end) & linkMask }
func (e *slot) prevEnd() uint32 { return uint32(e.end>>linkBits) & linkMask }

func (e *slot) setNextEnd(n uint32) { e.end = e.end&^linkMask | uint64(n) }
func (e *slot) setPrevEnd(n uint32) { e.end = e.end&^prevMask | uint64(n)<<linkBits }

func (e *slot) has(flags uint64) bool { return e.info.Load()&flags != 0 }

func (e *slot) list() listName { return listOf(e.info.Load()) }

func listOf(info uint64) listName { return listName(info & flagList / flagProbation) }

func (e *slot) spent() bool { return e.list() == spentList }

// keyLen is the length of the key, or hugeKey.
func (e *slot) keyLen() int { return int(e.info.Load() >> keyLenShift) }

// setInfo changes what the mask has. The shard is locked, but a call without the lock may set or clear flagBusy meanwhile.
func (e *slot) setInfo(mask, value uint64) {
	for {
		old := e.info.Load()
		if old&mask == value || e.info.CompareAndSwap(old, old&^mask|value) {
			return
		}
	}
}

// touch reads a word of each cache line that matters, without any lock.
func (e *slot) touch() uint64 { return e.key0.Load() + e.info.Load() }
