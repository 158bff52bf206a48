package table

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// holds reports whether the index finds a slot under a tag.
func (x *index) holds(tag, n uint32) bool {
	for p := x.find(tag); ; {
		switch p.Next() {
		case n:
			return true
		case NoSlot:
			return false
		}
	}
}

// entries returns how many places the index has, and how many are in use.
func (x *index) entries() (places, used int) {
	d := x.Dir.Load()
	if d == nil {
		return 0, 0
	}
	seen := map[*segment]bool{}
	for i := range d.segments {
		g := d.segments[i].Load()
		if seen[g] {
			continue
		}
		seen[g] = true
		for c := range g.Size.Load() {
			places += chunkEntries
			for place := range g.Chunks[c].Load() {
				if g.Chunks[c].Load()[place].Load() != 0 {
					used++
				}
			}
		}
	}
	return places, used
}

// Against a map, with tags that are often equal, and so few lines and chunks that all of them overflow.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		mask := rapid.SampledFrom([]uint32{0xffffffff, 0xffff00ff, 0xfff0ff0f, 0xf00007ff}).Draw(t, "mask")
		most := rapid.SampledFrom([]int{20, 300, 3000}).Draw(t, "keys")
		x := index{memory: newMemory()}
		model := map[uint32]uint32{} // slot to tag
		var slots []uint32
		for next := uint32(1); next < uint32(4*most); next++ {
			if len(slots) < most && random.IntN(5) > 0 {
				tag := random.Uint32() & mask
				x.Insert(tag, next)
				model[next], slots = tag, append(slots, next)
			} else if len(slots) > 0 {
				i := random.IntN(len(slots))
				n := slots[i]
				x.Remove(model[n], n)
				if x.holds(model[n], n) {
					t.Fatalf("slot %d is still there", n)
				}
				delete(model, n)
				slots[i] = slots[len(slots)-1]
				slots = slots[:len(slots)-1]
			}
			if next%uint32(most) > 0 && most > 20 {
				continue
			}
			for n, tag := range model {
				if !x.holds(tag, n) {
					t.Fatalf("slot %d has gone", n)
				}
			}
		}
		if _, used := x.entries(); used != len(model) {
			t.Fatalf("%d entries, want %d", used, len(model))
		}
	})
}

// Tags that name different lines of a chunk lie in these, each at the start of its own.
func TestLinesOfAChunk(t *testing.T) {
	x := index{memory: newMemory()}
	for line := range uint32(chunkLines) {
		x.Insert(line<<8, line+1)
	}
	for line := range uint32(chunkLines) {
		if c := x.Peek(line << 8); uint32(c[line*lineEntries].Load()) != line+1 || c.Touch(line<<8) != uint64(line<<8)<<32|uint64(line+1) {
			t.Errorf("line %d has another entry", line)
		}
	}
}

// At any size most entries are in use, and all are found where they were put.
func TestIndexGrows(t *testing.T) {
	x := index{memory: newMemory()}
	random := rand.New(rand.NewPCG(1, 2))
	tags, next := make([]uint32, 1<<16), 1000
	for i := range tags {
		tags[i] = random.Uint32()
		x.Insert(tags[i], uint32(i+1))
		if i == next {
			next += next / 8
			if places, used := x.entries(); used != i+1 || used*100 < places*55 {
				t.Fatalf("%d of %d entries are in use, want %d", used, places, i+1)
			}
		}
	}
	for i, tag := range tags {
		if !x.holds(tag, uint32(i+1)) || x.Peek(tag) == nil {
			t.Fatalf("entry %d has gone", i)
		}
	}
	for i, tag := range tags {
		x.Remove(tag, uint32(i+1))
	}
	if _, used := x.entries(); used != 0 {
		t.Fatalf("%d entries are left", used)
	}
}

// Tags with so much in common that they fill one chunk, whatever the size of a segment, or the last that one adds. The rest of the
// index takes next to nothing.
func TestIndexOfTagsAlike(t *testing.T) {
	const n = 1000
	var last []uint32
	for b, c := range chunkOf[mostChunks] {
		if c == mostChunks-1 {
			last = append(last, uint32(b))
		}
	}
	for name, bytes := range map[string][]uint32{"one byte": {7}, "of the last chunk": last} {
		x := index{memory: newMemory()}
		tag := func(i int) uint32 { return uint32(i)<<16 | bytes[i%len(bytes)] }
		for i := range n {
			x.Insert(tag(i), uint32(i+1))
			if places, used := x.entries(); used != i+1 || places > 5*n/2 {
				t.Fatalf("%s: %d of %d entries are in use, want %d", name, used, places, i+1)
			}
		}
		d, most := x.Dir.Load(), uint32(0)
		for i := range d.segments {
			most = max(most, d.segments[i].Load().Bits)
		}
		if d.bits != most {
			t.Errorf("%s: the directory has %d bits, and a segment %d", name, d.bits, most)
		}
		for i := range n {
			if !x.holds(tag(i), uint32(i+1)) {
				t.Fatalf("%s: entry %d has gone", name, i)
			}
		}
	}
}

// Each chunk of a segment gets its share, and growing takes from all others what the new one gets, and nothing else.
func TestChunkOf(t *testing.T) {
	for size := 2; size <= mostChunks; size++ {
		var share [mostChunks]int
		for b, c := range chunkOf[size] {
			share[c]++
			if before := chunkOf[size-1][b]; c != before && int(c) != size-1 {
				t.Errorf("from %d to %d chunks byte %d moves from %d to %d", size-1, size, b, before, c)
			}
		}
		for c, bytes := range share[:size] {
			if bytes < 256/size || bytes > (255+size)/size {
				t.Errorf("of %d chunks, %d has %d bytes", size, c, bytes)
			}
		}
	}
}

func newMemory() *Reserves {
	m := &Reserves{}
	m.Init()
	return m
}

// An index of which few keys are left becomes small, and has them all, also as it grows again.
func TestIndexShrinks(t *testing.T) {
	const many, few = 100_000, 500
	x := index{memory: newMemory()}
	for range 3 {
		for n := uint32(1); n <= many; n++ {
			x.Insert(TagOfHash(hashOf(uint64(n))), n)
		}
		full, _ := x.entries()
		for n := uint32(many); n > few; n-- {
			x.Remove(TagOfHash(hashOf(uint64(n))), n)
			x.Shrink(int64(n - 1))
		}
		places, used := x.entries()
		if places > 32*(few+chunkEntries) || places > full/8 || used != few || x.chunks*chunkEntries != places {
			t.Errorf("%d of %d places are left for %d keys, and %d chunks are counted", places, full, used, x.chunks)
		}
		for n := uint32(1); n <= few; n++ {
			if !x.holds(TagOfHash(hashOf(uint64(n))), n) {
				t.Fatalf("slot %d has gone", n)
			}
			x.Remove(TagOfHash(hashOf(uint64(n))), n)
		}
	}
}
