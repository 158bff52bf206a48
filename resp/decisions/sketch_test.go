package decisions

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// stream feeds a sketch, and knows the exact counts.
type stream struct {
	*sketch
	rng   *rand.Rand
	exact map[uint64]int64
}

func newStream(seed uint64) *stream {
	s := &stream{newSketch(), rand.New(rand.NewPCG(seed, 1)), map[uint64]int64{}}
	s.sketch.rng.Seed(seed, 2)
	return s
}

func (s *stream) add(hash uint64) {
	s.addTimes(hash, 1)
}

func (s *stream) addTimes(hash uint64, n int64) {
	s.sketch.add(item{hash: hash, count: n})
	s.exact[hash] += n
}

// hashes are those of n keys.
func (s *stream) hashes(n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = s.rng.Uint64()
	}
	return list
}

// check asks for keys whose counts lack at most so much, and for no count that is too high.
func (s *stream) check(t *testing.T, keys []uint64, lacks int64) {
	t.Helper()
	if n := len(s.items); n > MostTop || n != len(s.at) {
		t.Fatalf("%d items, %d are found", n, len(s.at))
	}
	got := map[uint64]int64{}
	for _, item := range s.items {
		if got[item.hash] = item.count; item.count > s.exact[item.hash] {
			t.Errorf("a key came %d times, not %d", s.exact[item.hash], item.count)
		}
	}
	for _, key := range keys {
		if n, listed := got[key]; !listed || n < s.exact[key]-lacks {
			t.Errorf("a key came %d times, the sketch has %d, listed: %v", s.exact[key], n, listed)
		}
	}
}

// Up to as many keys as the list has are counted exactly.
func TestFewKeysAreExact(t *testing.T) {
	s := newStream(1)
	keys := s.hashes(MostTop)
	for range 20_000 {
		s.add(keys[int(float64(MostTop)*s.rng.Float64()*s.rng.Float64())])
	}
	s.check(t, keys[:MostTop/2], 0)
}

// Keys with one in 1,000 of all are found among a flood of keys that come once, whether they come from the beginning or later.
func TestFlood(t *testing.T) {
	for seed := range uint64(4) {
		s := newStream(seed)
		for range int(seed) * 50_000 {
			s.add(s.rng.Uint64())
		}
		keys := s.hashes(20)
		for range 200_000 {
			if s.rng.IntN(50) == 0 {
				s.add(keys[s.rng.IntN(len(keys))])
			} else {
				s.add(s.rng.Uint64())
			}
		}
		s.check(t, keys, 10)
	}
}

// A key with one in 500 of what comes since it does is found, though the list is full and others have come for long.
func TestNewAmongOld(t *testing.T) {
	for seed := range uint64(8) {
		s := newStream(seed)
		old, key := s.hashes(1500), s.hashes(1)
		for range 200 * len(old) {
			s.add(old[s.rng.IntN(len(old))])
		}
		for s.exact[key[0]] < 1000 {
			if s.rng.IntN(500) == 0 {
				s.add(key[0])
			} else {
				s.add(old[s.rng.IntN(len(old))])
			}
		}
		s.check(t, key, 40)
	}
}

// Calls that are added together count as those that come one by one.
func TestManyAtOnce(t *testing.T) {
	for seed := range uint64(4) {
		s := newStream(seed)
		old, keys := s.hashes(1500), s.hashes(20)
		for range 100 {
			for _, hash := range old {
				s.addTimes(hash, 1+s.rng.Int64N(3))
			}
		}
		for range 100 {
			for _, key := range keys {
				s.addTimes(key, 1+s.rng.Int64N(200))
			}
			for range 1000 {
				s.add(s.rng.Uint64())
			}
		}
		s.check(t, keys, 60)
	}
}

// So is it in a flood that begins when the list is full of higher counts.
func TestNewInAFlood(t *testing.T) {
	for seed := range uint64(4) {
		s := newStream(seed)
		old, key := s.hashes(MostTop), s.hashes(1)
		for range 1000 {
			for _, hash := range old {
				s.add(hash)
			}
		}
		for s.exact[key[0]] < 1100 {
			if s.rng.IntN(500) == 0 {
				s.add(key[0])
			} else {
				s.add(s.rng.Uint64())
			}
		}
		s.check(t, key, 10)
	}
}

// A key that leaves the list and comes back goes on where it was.
func TestBackInTheList(t *testing.T) {
	s := newStream(1)
	keys := s.hashes(MostTop + 1)
	for _, n := range []int{10, 11, 12} { // 12 in all for the first, which goes and comes back, and 11 for the second
		first := s.exact[keys[0]]
		key := keys[n%2]
		for s.exact[key] < int64(n) {
			s.add(key)
		}
		for _, other := range keys[2:] {
			for first == 0 && s.exact[other] < 1000 {
				s.add(other)
			}
		}
		s.check(t, keys[n%2:n%2+1], 0)
	}
}

// An item has its key, its length and its policy, whatever the caller does with the key's memory.
func TestItems(t *testing.T) {
	s := newSketch()
	long := bytes.Repeat([]byte("x"), maxKey)
	s.add(item{1<<60 + 1, sumKey{[]byte("k"), 1, 7}, 1})
	s.add(item{2<<60 + 2048, sumKey{long, 64 << 10, 8}, 1})
	want := []item{{1<<60 + 1, sumKey{[]byte("k"), 1, 7}, 1}, {2<<60 + 2048, sumKey{bytes.Clone(long), 64 << 10, 8}, 1}}
	if clear(long); !reflect.DeepEqual(s.items, want) {
		t.Errorf("%+v, want %+v", s.items, want)
	}
}

// No two sketches throw the same dice: somebody who knew them could keep a key out.
func TestDice(t *testing.T) {
	if a, b := newSketch(), newSketch(); a.rng == b.rng {
		t.Error("two sketches have one seed")
	}
}

// A key that leaves the list takes the buckets of keys that came less often, and no others.
func TestGoBack(t *testing.T) {
	for count, takes := range map[uint32]bool{9: true, 10: false, 11: false} {
		s := newSketch()
		other := bucket{2, count, 3}
		for row := range sketchRows {
			*s.bucket(row, 1<<32) = other
		}
		s.goBack(&item{hash: 1 << 32, count: 10})
		for row := range sketchRows {
			want := other
			if takes {
				want = bucket{1, 10, maxStrength}
			}
			if got := *s.bucket(row, 1<<32); got != want {
				t.Errorf("row %d with %d: %+v, want %+v", row, count, got, want)
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	key := []byte("user:12345")
	b.Run("listed", func(b *testing.B) {
		s, keys := newSketch(), newStream(1).hashes(50)
		for i := 0; b.Loop(); i++ {
			s.add(item{hash: keys[i%len(keys)], key: sumKey{start: key}, count: 1})
		}
	})
	b.Run("flood", func(b *testing.B) {
		s, rng := newSketch(), rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			s.add(item{hash: rng.Uint64(), key: sumKey{start: key}, count: 1})
		}
	})
}
