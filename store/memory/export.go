package memory

import (
	"celld/store"
	"celld/store/memory/table"
	"math"
	"slices"
)

// Export tells fn the live keys of one small part of the store, some 350 of them or 1 MB, and returns where the next part
// begins and whether there is one. Calling it again and again copies the store without holding it up or taking memory.
//
// The order is that of the keys' hashes, which growth does not change. So no key is told twice, and one that is there all
// the while is told once, in the state that it has when its part is. What is put or deleted meanwhile may be told or not.
// Spent keys are left out, and those of whose limits all policies are gone. A key that is renamed meanwhile may be told under one name, both, or, if Export has not begun at
// what StartExport returns, neither.
//
// fn is called under a lock: it must be quick, must not use the store, and must not keep the key.
func (s *exports) Export(from Position, nowNS int64, fn func(key []byte, st store.Value)) (next Position, more bool) {
	if ahead := s.wall.Load(); ahead != 0 {
		told := fn
		fn = func(key []byte, st store.Value) { told(key, inWall(st, ahead)) }
	}
	if from.shard == len(s.all) {
		return from, from.moves.tell(nowNS, s.WallNS(nowNS), fn)
	}
	sh := &s.all[from.shard]
	sh.lock(nowNS)
	from.moves.lock()
	from.tag = sh.export(uint32(from.tag), nowNS, from.moves.others(fn))
	if from.tag > maxTag {
		from.shard, from.tag = from.shard+1, 0
	}
	from.moves.unlock(from)
	sh.unlock()
	return from, from.shard < len(s.all) || from.moves.any()
}

const maxTag = 1<<32 - 1

// export tells of the keys in the segment of a tag from that tag on, and returns the first tag that is to come.
func (sh *shard) export(from uint32, nowNS int64, fn func(key []byte, st store.Value)) (next uint64) {
	d := sh.Index.Dir.Load()
	if d == nil {
		return maxTag + 1
	}
	g := d.Segment(from)
	var entries [table.MostChunks * table.ChunkEntries]uint64
	n := 0
	for i := range g.Size.Load() {
		c := g.Chunks[i].Load()
		for place := range c {
			if entry := c[place].Load(); entry != 0 && table.TagOf(entry) >= from {
				entries[n] = entry
				n++
			}
		}
	}
	mostBytes := int64(math.MaxInt64)
	if len(sh.Keys.Huge) > 0 || len(sh.Tallies.Rings) > len(sh.Tallies.FreeRings) { // they may be many bytes, so it may stop within
		mostBytes = bytesPerLock
		slices.Sort(entries[:n])
	}
	var sum uint64
	for _, entry := range entries[:n] { // their cache misses overlap: see Store.touch
		sum += sh.Slabs.At(uint32(entry)).Touch()
	}
	keep(sum)
	var scratch [table.HugeKey]byte
	told := int64(0)
	for i, entry := range entries[:n] {
		if told >= mostBytes && table.TagOf(entry) != table.TagOf(entries[i-1]) {
			return uint64(table.TagOf(entry))
		}
		n := uint32(entry)
		e := sh.Slabs.At(n)
		if e.Spent() || sh.Dead(n, e, nowNS) {
			continue
		}
		if st := sh.full(n, e); !over(st, nowNS, nowNS+sh.Wall.Load()) {
			told += sh.CostBytes(n, e)
			fn(sh.Keys.View(n, e, &scratch), st)
		}
	}
	shift := 32 - g.Bits
	return (uint64(from)>>shift + 1) << shift
}
