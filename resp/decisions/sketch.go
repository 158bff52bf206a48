package decisions

import (
	"math"
	"math/rand/v2"
)

// MostTop is how many keys Top.Most knows at most.
const MostTop = 100

// The sizes of a sketch, and how many bytes it keeps of a key. Keys are told apart by their hashes.
const (
	sketchRows  = 3
	sketchWidth = 1024 // buckets of a row
	maxKey      = 256
)

// maxStrength is a chance of 0.4 to be weakened. With 10, a key with one in 1,000 lost its bucket to floods now and then, and with it
// up to 918 of 2,000 calls. With 30, one in 500 was missed among 1,500 older keys half of the time.
const maxStrength = 12

// sketch finds the keys that come most often among any number, in a memory that does not grow. It does not know what they are keys of. Its
// methods must not be called at once. Make one with newSketch.
//
// It is HeavyKeeper (Gong et al., USENIX ATC 2018) in front of a list of MostTop keys. A key that is not listed is counted in one
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
// A sketch takes 36 KB for its buckets, and at most 45 KB for the list. add takes 20 ns with a key in the list, and 70 in a flood.
type sketch struct {
	rows  [sketchRows][sketchWidth]bucket
	items []item         // the list, in no order
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

// item is a key of the list, with the policy of the call that brought it there.
type item struct {
	hash  uint64
	key   sumKey
	count int64
}

// newSketch returns an empty sketch.
func newSketch() *sketch {
	s := &sketch{at: make(map[uint64]int, MostTop)}
	s.rng.Seed(rand.Uint64(), rand.Uint64())
	return s
}

// clear forgets all. The items stay whoever has them.
func (s *sketch) clear() {
	s.rows = [sketchRows][sketchWidth]bucket{}
	s.items, s.least = nil, 0
	clear(s.at)
}

// add counts a key that came count times, 1 or more, by its hash. Every bit of that must depend on the key in a way that nobody
// who chooses keys can know. It copies what it keeps.
func (s *sketch) add(came item) {
	if i, listed := s.at[came.hash]; listed {
		s.items[i].count += came.count
		return
	}
	count := s.count(came.hash, came.count)
	came.count = count
	if len(s.items) < MostTop {
		s.items = append(s.items, item{})
		s.put(len(s.items)-1, came)
		return
	}
	if count <= s.least {
		return
	}
	i := 0
	for j := range s.items {
		if s.items[j].count < s.items[i].count {
			i = j
		}
	}
	if s.least = s.items[i].count; count > s.least {
		s.goBack(&s.items[i])
		delete(s.at, s.items[i].hash)
		s.put(i, came)
	}
}

func (s *sketch) put(i int, came item) {
	came.key.start = append(s.items[i].key.start[:0], came.key.start...)
	s.items[i] = came
	s.at[came.hash] = i
}

// bucket is the one of a row that a hash falls into. Its mark is the hash's upper half.
func (s *sketch) bucket(row int, hash uint64) *bucket {
	return &s.rows[row][hash>>(10*row)%sketchWidth]
}

// count counts a key that is not listed and came n times, and returns how often it has come, as far as that is known.
func (s *sketch) count(hash uint64, n int64) int64 {
	mark, most := uint32(hash>>32), n
	for row := range sketchRows {
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
func (s *sketch) wears(b *bucket) bool {
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
func (s *sketch) goBack(item *item) {
	mark, count := uint32(item.hash>>32), uint32(min(item.count, math.MaxUint32))
	for row := range sketchRows {
		if b := s.bucket(row, item.hash); b.count < count {
			*b = bucket{mark, count, maxStrength}
		}
	}
}
