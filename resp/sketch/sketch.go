// Package sketch finds the keys that come most often among any number, in a memory that does not grow. It does not know what they are keys
// of.
//
//	s := sketch.New()
//	s.Add(sketch.Item{Hash: hash, Key: key, Length: len(key), Count: 1})
//	for _, item := range s.Items() { … } // at most Kept, in no order
//
// It is HeavyKeeper (Gong et al., USENIX ATC 2018) in front of a list of Kept keys. A key that is not listed is counted in one
// bucket of each row. Each other key that falls into such a bucket weakens it, by a chance that is the lower the stronger the bucket
// is, and takes it over when it has no strength left. So a flood of keys that come once wears itself out, and a key that keeps
// coming climbs. Once it exceeds the least of the list it takes that place, and from then on each of its calls counts exactly.
//
// In the paper a bucket's strength is its count. Then keys that came often in the past would keep new ones out: a bucket with 200
// takes 5 million calls of others to fall. So strength ends at maxStrength, and what wears off is not taken from the count.
//
// An item's count is never too high, except where two keys have one hash. It lacks what came before the key got a bucket, and a place in
// the list. That is at most 40 calls for a key with one in 500 of all calls since it first came: 10 or fewer in floods of keys that come
// once, and 35 where 1,500 keys had come 200 times each before. A key that has less than one in 1,000 may lack more, or be missed.
//
// A Sketch takes 36 KB for its buckets, and at most 45 KB for the list. Add takes 20 ns with a key in the list, and 70 in a flood.
package sketch

import (
	"math"
	"math/rand/v2"
)

// The sizes of a Sketch, and what it keeps of a key.
const (
	Rows   = 3
	Width  = 1024 // buckets of a row
	Kept   = 100  // keys in the list
	MaxKey = 256  // bytes of a key that are kept; they are told apart by their hashes
)

// maxStrength is a chance of 0.4 to be weakened. With 10, a key with one in 1,000 lost its bucket to floods now and then, and with it
// up to 918 of 2,000 calls. With 30, one in 500 was missed among 1,500 older keys half of the time.
const maxStrength = 12

// Sketch counts keys. Its methods must not be called at once. Make one with New.
type Sketch struct {
	rows  [Rows][Width]bucket
	items []Item
	at    map[uint64]int // in items, by hash
	least int64          // no item has a lower count
	rng   rand.PCG
}

// bucket is the count of one key, which is known by some bits of its hash.
type bucket struct {
	mark     uint32
	count    uint32
	strength uint32 // 0: the bucket is free
}

// Item is a key of the list.
type Item struct {
	Hash   uint64
	Key    []byte // its first MaxKey bytes, or more where it is added
	Length int    // of the whole key
	About  uint32 // what the caller told with the key when it came into the list
	Count  int64
}

// New returns an empty Sketch.
func New() *Sketch {
	s := &Sketch{at: make(map[uint64]int, Kept)}
	s.rng.Seed(rand.Uint64(), rand.Uint64())
	return s
}

// Add counts a key that came Count times, 1 or more, by its hash. Every bit of that must depend on the key in a way that nobody
// who chooses keys can know. It copies what it keeps.
func (s *Sketch) Add(came Item) {
	if i, listed := s.at[came.Hash]; listed {
		s.items[i].Count += came.Count
		return
	}
	count := s.count(came.Hash, came.Count)
	came.Count = count
	if len(s.items) < Kept {
		s.items = append(s.items, Item{})
		s.put(len(s.items)-1, came)
		return
	}
	if count <= s.least {
		return
	}
	i := 0
	for j := range s.items {
		if s.items[j].Count < s.items[i].Count {
			i = j
		}
	}
	if s.least = s.items[i].Count; count > s.least {
		s.goBack(&s.items[i])
		delete(s.at, s.items[i].Hash)
		s.put(i, came)
	}
}

func (s *Sketch) put(i int, came Item) {
	came.Key = append(s.items[i].Key[:0], came.Key[:min(len(came.Key), MaxKey)]...)
	s.items[i] = came
	s.at[came.Hash] = i
}

// bucket is the one of a row that a hash falls into. Its mark is the hash's upper half.
func (s *Sketch) bucket(row int, hash uint64) *bucket {
	return &s.rows[row][hash>>(10*row)%Width]
}

// count counts a key that is not listed and came n times, and returns how often it has come, as far as that is known.
func (s *Sketch) count(hash uint64, n int64) int64 {
	mark, most := uint32(hash>>32), n
	for row := range Rows {
		b, left := s.bucket(row, hash), n
		for b.strength > 0 && b.mark != mark && left > 0 && !s.wears(b) {
			left--
		}
		switch {
		case left == 0:
		case b.strength == 0:
			*b = bucket{mark, uint32(min(left, math.MaxUint32)), uint32(min(left, maxStrength))}
		default:
			b.count = uint32(min(int64(b.count)+n, math.MaxUint32))
			b.strength = uint32(min(int64(b.strength)+n, maxStrength))
			most = max(most, int64(b.count))
		}
	}
	return most
}

// wears weakens a bucket for another key, by chance, and reports whether nothing is left of it.
func (s *Sketch) wears(b *bucket) bool {
	if uint32(s.rng.Uint64()) < chances[b.strength] {
		b.strength--
	}
	return b.strength == 0
}

// chances are those that a bucket of a strength loses one: 1.08 to the power of -strength, in 2^-32.
var chances = func() (c [maxStrength + 1]uint32) {
	for strength := range c {
		c[strength] = uint32(min(math.Pow(1.08, -float64(strength))*(1<<32), math.MaxUint32))
	}
	return c
}()

// goBack hands the count of a key that leaves the list back to the buckets.
func (s *Sketch) goBack(item *Item) {
	mark, count := uint32(item.Hash>>32), uint32(min(item.Count, math.MaxUint32))
	for row := range Rows {
		if b := s.bucket(row, item.Hash); b.count < count {
			*b = bucket{mark, count, maxStrength}
		}
	}
}

// Items are the keys of the list, in no order. They stay valid until the next Add.
func (s *Sketch) Items() []Item { return s.items }
