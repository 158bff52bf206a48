package table

import (
	"math"
	"runtime"
	"sync/atomic"

	"celld/store"
)

const (
	Never  = math.MaxUint64 // an end that no int64 instant reaches
	NoSlot = 0              // no slot has this number

	linkBits = 28
	linkMask = 1<<linkBits - 1
	maxSlots = 1 << linkBits // of one shard: 12 GB of slots

	prevMask  = linkMask << linkBits
	byteShift = 2 * linkBits // of the byte that both words of links have left
)

// Slot is a key and its state, and where it stands in the shard's structures: six words, none of them a pointer. Links
// are slot numbers of 28 bits, so that two fit a word and leave a byte for something else.
//
// The first four words are all that a call without the lock looks at. They lie in one cache line in three slots of four.
type Slot struct {
	key0 atomic.Uint64 // bytes 0..7 of the key
	key1 atomic.Uint64 // bytes 8..15 of the key; of a longer one bytes 8..11, and the number of its first tail
	TAT  atomic.Uint64 // with FlagCount: the count, as an int64
	Info atomic.Uint64 // flags; length of the key, or HugeKey; 48 bits more
	use  uint64        // next (older) and previous (younger) in the order of use; flagFirst
	end  uint64        // next and previous in a bucket of the wheel
}

// The flags of Slot.Info. Its low 47 bits are the last use for OBJECT IDLETIME, in units of touchedUnit. In a key that holds limits they
// are the number of its first limit entry.
const (
	FlagBusy      = 1 << (48 + iota) // a call without the lock is changing the state
	flagProbation                    // the two are which list: free, probation or protected
	flagProtected
	FlagJournaled // is in the journal's list. It outlasts the key, as the number in the list does
	FlagNoExpiry  // Value.ExpiryNS is NoExpiry
	FlagExpiry    // Value.ExpiryNS is in slabs.expiries
	FlagLimits    // holds limits, and tat is when the last of them ends
	FlagWaited    // somebody waits for a state of the key

	flagList     = flagProbation | flagProtected
	FlagCount    = 1 << 47 // the key holds a count. It has one of the other two flags, too
	FlagsOfState = FlagNoExpiry | FlagExpiry | FlagCount

	touchedMask = FlagCount - 1
	touchedUnit = 16 // bits: 65 µs

	keyLenShift = 56
	keyLenMask  = 0xff << keyLenShift
)

// flagFirst, in Slot.use, marks the first slot of a bucket of the wheel. Its previous one in end is then the number of the bucket.
const flagFirst = 1 << byteShift

func (e *Slot) Older() uint32    { return uint32(e.use) & linkMask }
func (e *Slot) link() uint32     { return e.Older() }
func (e *Slot) setLink(n uint32) { e.use = uint64(n) }

func (e *Slot) younger() uint32 { return uint32(e.use>>linkBits) & linkMask }

func (e *Slot) setOlder(n uint32)   { e.use = e.use&^linkMask | uint64(n) }
func (e *Slot) setYounger(n uint32) { e.use = e.use&^prevMask | uint64(n)<<linkBits }

func (e *Slot) NextInBucket() uint32 { return uint32(e.end) & linkMask }
func (e *Slot) prevInBucket() uint32 { return uint32(e.end>>linkBits) & linkMask }

func (e *Slot) setNextInBucket(n uint32) { e.end = e.end&^linkMask | uint64(n) }
func (e *Slot) setPrevInBucket(n uint32) { e.end = e.end&^prevMask | uint64(n)<<linkBits }

func (e *Slot) Has(flags uint64) bool { return e.Info.Load()&flags != 0 }

// Info is what Slot.Info held when it was loaded.
type Info uint64

// List is the list that the slot was in.
func (i Info) List() listName { return listName(i & flagList / flagProbation) }

// TouchedNS is when a key that holds a TAT was last used.
func (i Info) TouchedNS() int64 { return int64(i & touchedMask << touchedUnit) }

func (e *Slot) List() listName { return Info(e.Info.Load()).List() }

// keyLen is the length of the key, or HugeKey.
func (e *Slot) keyLen() int { return int(e.Info.Load() >> keyLenShift) }

// SetInfo sets the bits of the mask. The shard is locked, but a call without the lock may set or clear FlagBusy meanwhile.
func (e *Slot) SetInfo(mask, value uint64) {
	for {
		old := e.Info.Load()
		if old&mask == value || e.Info.CompareAndSwap(old, old&^mask|value) {
			return
		}
	}
}

// Touch reads a word of each cache line that matters, without any lock.
func (e *Slot) Touch() uint64 { return e.key0.Load() + e.Info.Load() }

// Settle waits for the call that is busy with the slot without the lock. The shard is locked, so no other will change it.
func (e *Slot) Settle() {
	for e.Has(FlagBusy) {
		runtime.Gosched()
	}
}

// SettledTAT is the TAT under the lock. It is 0, which is long past, for a count.
func (e *Slot) SettledTAT() uint64 {
	e.Settle()
	if e.Has(FlagCount) {
		return 0
	}
	return e.TAT.Load()
}

// PutValue sets the TAT or the count. FlagsOfState are clear before.
func (e *Slot) PutValue(st store.Value) {
	if st.IsCount() {
		e.TAT.Store(uint64(st.Count))
		e.SetInfo(FlagCount, FlagCount)
	} else {
		e.TAT.Store(st.TAT)
	}
}
