package table

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

const (
	lineEntries  = 8 // a cache line
	chunkLines   = 8
	chunkEntries = lineEntries * chunkLines
	mostChunks   = 8 // of a segment

	SegmentEntries = mostChunks * chunkEntries // at most

	growChunks  = 2 // that a full segment adds
	splitChunks = 5 // that each half of a full segment begins with
)

// index finds slots by a tag, 32 bits of a key's hash: open addressing with 8 bytes an entry, tag << 32 | slot, and 0
// for none. It grows in steps that take microseconds, however large it is:
//
//	tag ─ upper bits ─▶ directory ─▶ segment ─ lowest byte ─▶ chunk ─ 3 bits ─▶ line of 8 entries, or one of the next
//
// A full chunk makes its segment add two chunks, to which the others give their share, up to 8; then the segment is split by one
// more upper bit, as in extendible hashing (Fagin et al., 1979). The directory doubles when a segment has more bits than it.
// Growing by an eighth to two fifths keeps 61 to 85 % of the entries in use at any size. With halving alone that would swing from 42
// to 85 %, for all segments at once, as they fill alike. Adding one chunk at a time cost 40 ns more a new key, for 1 % less memory.
//
// Only its owner, under the shard's lock, changes it. Others may look for slots without the lock, so all words are atomic, which
// costs nothing in reading. What they find is right if the shard's version is the same before and after.
type index struct {
	Dir    atomic.Pointer[directory]
	memory *Reserves
	fresh  []Chunk // never used
	chunks int     // of all segments
	sparse uint32  // the tag at which Shrink goes on
}

type directory struct {
	bits     uint32
	segments []atomic.Pointer[segment] // 1 << bits
}

type segment struct {
	Bits   uint32 // upper bits that all its tags have in common
	Size   atomic.Uint32
	Chunks [mostChunks]atomic.Pointer[Chunk]
}

// Chunk is a table of its own: an entry is in the line that its tag names, or if that is full in the next that is not.
// The entries of a line are at its start.
//
// Its methods check for nil, though it is nil only for probes of an empty index. Otherwise the compiler checks by loading the first
// word. That is one more cache line from memory, and took a quarter of a new key's time.
type Chunk [chunkEntries]atomic.Uint64

// chunkBlock is how chunks come: one object of 8 KB, that the collector has less to follow.
type chunkBlock [16]Chunk

func (x *index) newChunk() *Chunk {
	if len(x.fresh) == 0 {
		x.fresh = x.memory.chunks.newBlock()[:]
	}
	c := &x.fresh[0]
	x.fresh = x.fresh[1:]
	x.chunks++
	return c
}

// chunkOf tells the chunk for the lowest byte of a tag in a segment of so many chunks. Each has the same share, and a
// Segment that grows by one changes the chunk of just those bytes that the new one gets.
var chunkOf = func() (t [2 * mostChunks][256]uint8) {
	for size := 2; size <= mostChunks; size++ {
		t[size] = t[size-1]
		var given [mostChunks]int
		for _, c := range t[size] {
			given[c]++
		}
		for _, share := range []int{(255 + size) / size, 256 / size} { // first of those that have too much
			for b, c := range t[size] {
				if given[c] > share && given[size-1] < 256/size {
					given[c]--
					given[size-1]++
					t[size][b] = uint8(size - 1)
				}
			}
		}
	}
	return t
}()

// drop forgets all entries, and gives their memory back.
func (x *index) drop() {
	x.Dir.Store(nil)
	x.fresh, x.chunks = nil, 0
}

func TagOf(entry uint64) uint32 { return uint32(entry >> 32) }

func lineOf(tag uint32) uint32 { return tag >> 8 % chunkLines * lineEntries }

func (d *directory) Segment(tag uint32) *segment {
	return d.segments[uint64(tag)>>(32-d.bits)].Load()
}

func (g *segment) chunk(tag uint32) *Chunk {
	return g.Chunks[chunkOf[g.Size.Load()%(2*mostChunks)][uint8(tag)]%mostChunks].Load()
}

// probe is a search for the slots with one tag, of which there are hardly ever two.
type probe struct {
	chunk *Chunk
	tag   uint32
	place uint32 // where next goes on
	left  uint32 // entries that it may still see
}

func (x *index) find(tag uint32) probe { return x.Peek(tag).Find(tag) }

// Next returns the next slot with the tag, or NoSlot.
func (p *probe) Next() uint32 {
	c := p.chunk
	if c == nil {
		return NoSlot
	}
	for p.left > 0 {
		entry := c[p.place%chunkEntries].Load()
		if entry == 0 { // the line is not full, so none has gone past it
			p.left = 0
			return NoSlot
		}
		p.place++
		p.left--
		if TagOf(entry) == p.tag {
			return uint32(entry)
		}
	}
	return NoSlot
}

// Insert adds a slot under a tag.
func (x *index) Insert(tag, n uint32) {
	if x.Dir.Load() == nil {
		g := &segment{}
		g.Chunks[0].Store(x.newChunk())
		g.Size.Store(1)
		d := &directory{segments: make([]atomic.Pointer[segment], 1)}
		d.segments[0].Store(g)
		x.Dir.Store(d)
	}
	for entry := uint64(tag)<<32 | uint64(n); ; {
		g := x.Dir.Load().Segment(tag)
		if g.chunk(tag).insert(entry) {
			return
		}
		if g.Size.Load() == mostChunks || !x.grow(g) {
			x.split(g, tag)
		}
	}
}

// Remove takes out a slot that is in the index under this tag.
func (x *index) Remove(tag, n uint32) {
	x.Dir.Load().Segment(tag).chunk(tag).remove(uint64(tag)<<32 | uint64(n))
}

// insert returns false when the chunk is full.
func (c *Chunk) insert(entry uint64) bool {
	if c == nil {
		return false
	}
	place := lineOf(TagOf(entry))
	for range chunkEntries {
		if p := &c[place%chunkEntries]; p.Load() == 0 {
			p.Store(entry)
			return true
		}
		place++
	}
	return false
}

// remove takes an entry out. If its line was full, an entry that lies further on for that reason moves into the free place, and so on
// from there.
func (c *Chunk) remove(entry uint64) {
	if c == nil {
		return
	}
	hole := lineOf(TagOf(entry))
	for c[hole%chunkEntries].Load() != entry {
		hole++
	}
	hole %= chunkEntries
	for {
		line := hole / lineEntries
		end := (line + 1) * lineEntries
		last := hole
		for last+1 < end && c[last+1].Load() != 0 {
			last++
		}
		full := last+1 == end
		if last != hole {
			c[hole].Store(c[last].Load())
		}
		c[last].Store(0)
		if !full {
			return
		}
		if hole = c.passed(line); hole == chunkEntries {
			return
		}
		c[last].Store(c[hole].Load())
	}
}

// passed returns the place of an entry that lies behind a line because that was full, or chunkEntries.
func (c *Chunk) passed(line uint32) uint32 {
	for distance := uint32(1); distance < chunkLines; distance++ {
		start := (line + distance) % chunkLines * lineEntries
		for place := start; place < start+lineEntries; place++ {
			entry := c[place].Load()
			if entry == 0 {
				return chunkEntries
			}
			home := lineOf(TagOf(entry)) / lineEntries
			if (line-home)%chunkLines < (place/lineEntries-home)%chunkLines {
				return place
			}
		}
	}
	return chunkEntries
}

// grow adds growChunks to a segment, and returns false when one would be too full at once.
func (x *index) grow(g *segment) bool {
	old := g.Size.Load()
	size := min(old+growChunks, mostChunks)
	var moved [growChunks * chunkEntries]uint64
	var share [growChunks]int
	n := 0
	for i := range old {
		c := g.Chunks[i].Load()
		for place := range c {
			entry := c[place].Load()
			if entry == 0 {
				continue
			}
			to := uint32(chunkOf[size][uint8(entry>>32)])
			if to < old {
				continue
			}
			if share[to-old]++; share[to-old] > chunkEntries {
				return false
			}
			moved[n] = entry
			n++
		}
	}
	for i := old; i < size; i++ {
		g.Chunks[i].Store(x.newChunk())
	}
	for _, entry := range moved[:n] {
		g.chunk(TagOf(entry)).remove(entry)
		g.Chunks[chunkOf[size][uint8(entry>>32)]].Load().insert(entry)
	}
	g.Size.Store(size)
	return true
}

// split makes two segments of the one that a tag leads to, in the chunks that it has and two new ones.
func (x *index) split(g *segment, tag uint32) {
	var entries [mostChunks * chunkEntries]uint64
	var spare []*Chunk
	n := 0
	for i := range g.Size.Load() {
		c := g.Chunks[i].Load()
		spare = append(spare, c)
		for place := range c {
			if entry := c[place].Load(); entry != 0 {
				entries[n] = entry
				n++
				c[place].Store(0)
			}
		}
	}
	x.halve(entries[:n], g.Bits, tag, &spare)
	x.chunks -= len(spare)
}

// halve plants entries, which have so many upper bits of a tag in common, in two segments.
func (x *index) halve(entries []uint64, bits, tag uint32, spare *[]*Chunk) {
	bit := uint32(1) << (31 - bits)
	low := 0
	for i, entry := range entries {
		if TagOf(entry)&bit == 0 {
			entries[i], entries[low] = entries[low], entry
			low++
		}
	}
	x.plant(entries[:low], bits+1, tag&^bit, spare)
	x.plant(entries[low:], bits+1, tag|bit, spare)
}

// plant makes a segment of entries that have so many upper bits of a tag in common. The sizes that are too small for
// one of its chunks are few, and that none is large enough is next to impossible; then it is halved once more.
func (x *index) plant(entries []uint64, bits, tag uint32, spare *[]*Chunk) {
	size := max(uint32(len(entries)*splitChunks/(mostChunks*chunkEntries/2)), 1)
	for size = min(size, splitChunks); size <= mostChunks; size++ {
		var share [mostChunks]int
		for _, entry := range entries {
			share[chunkOf[size][uint8(entry>>32)]]++
		}
		if slices.Max(share[:]) < chunkEntries {
			break
		}
	}
	if size > mostChunks {
		x.halve(entries, bits, tag, spare)
		return
	}
	g := &segment{Bits: bits}
	for i := range size {
		if last := len(*spare) - 1; last >= 0 {
			g.Chunks[i].Store((*spare)[last])
			*spare = (*spare)[:last]
		} else {
			g.Chunks[i].Store(x.newChunk())
		}
	}
	g.Size.Store(size)
	for _, entry := range entries {
		g.chunk(TagOf(entry)).insert(entry)
	}
	d := x.Dir.Load()
	for d.bits < bits {
		d = d.double()
	}
	first := uint64(tag) >> (32 - bits) << (d.bits - bits)
	for i := range uint64(1) << (d.bits - bits) {
		d.segments[first+i].Store(g)
	}
	x.Dir.Store(d)
}

// Shrink does one step of making an index smaller that holds only so few keys: 32 segments that lie side by side become one.
func (x *index) Shrink(keys int64) {
	const mergeBits, mostSparse = 5, 32
	d := x.Dir.Load()
	if d == nil || d.bits < mergeBits || int64(x.chunks)*chunkEntries < mostSparse*(keys+chunkEntries) {
		return
	}
	bits := d.bits - mergeBits
	span := uint64(1) << (32 - bits)
	first := uint64(x.sparse) &^ (span - 1)
	x.sparse = uint32(first + span)
	if d.Segment(uint32(first)).Bits <= bits { // it is one already
		return
	}
	var entries []uint64
	for tag := first; tag < first+span; {
		x.chunks -= int(d.Segment(uint32(tag)).Size.Load())
		entries, tag = x.AppendSegment(entries, uint32(tag))
	}
	x.plant(entries, bits, uint32(first), new([]*Chunk))
}

func (d *directory) double() *directory {
	twice := &directory{bits: d.bits + 1, segments: make([]atomic.Pointer[segment], 2*len(d.segments))}
	for i := range twice.segments {
		twice.segments[i].Store(d.segments[i/2].Load())
	}
	return twice
}

// Peek returns the chunk of a tag without any lock, or nil. It does not touch it.
func (x *index) Peek(tag uint32) *Chunk {
	d := x.Dir.Load()
	if d == nil {
		return nil
	}
	return d.Segment(tag).chunk(tag)
}

// AppendSegment appends the entries of the segment of a tag, from that tag on, and returns the first tag behind the segment.
func (x *index) AppendSegment(entries []uint64, tag uint32) (all []uint64, next uint64) {
	d := x.Dir.Load()
	if d == nil {
		return entries, 1 << 32
	}
	g := d.Segment(tag)
	for i := range g.Size.Load() {
		c := g.Chunks[i].Load()
		for place := range c {
			if entry := c[place].Load(); entry != 0 && TagOf(entry) >= tag {
				entries = append(entries, entry)
			}
		}
	}
	shift := 32 - g.Bits
	return entries, (uint64(tag)>>shift + 1) << shift
}

// Prefetch brings the line in which a tag is looked for first into the caches.
func (c *Chunk) Prefetch(tag uint32) {
	if c != nil {
		prefetch(unsafe.Pointer(&c[lineOf(tag)]))
	}
}

// Touch reads a word of the line in which a tag is looked for first.
func (c *Chunk) Touch(tag uint32) uint64 {
	if c == nil {
		return 0
	}
	return c[lineOf(tag)].Load()
}

func (c *Chunk) Find(tag uint32) probe {
	return probe{chunk: c, tag: tag, place: lineOf(tag), left: chunkEntries}
}
