package shard

import (
	"math"
	"slices"
	"sync"

	"celld/store"
	"celld/store/memory/table"
)

// Export tells fn the live keys of one small part of the store, some 350 of them or 1 MB, and returns where the next part
// begins and whether there is one. Calling it again and again copies the store without holding it up or taking memory.
//
// The order is that of the keys' hashes, which growth does not change. So no key is told twice, and one that is there all the while is told
// once, in the state that it has when its part is. What is put or deleted meanwhile may be told or not. Keys are left out that hold
// nothing but limits of policies that are gone. A key that is renamed meanwhile may be told under one name or under both.
// If the first call did not begin at what StartExport returns, it may be told under no name.
//
// fn is called under a lock: it must be quick, must not use the store, and must not keep the key.
func (s *Exports) Export(from Position, nowNS int64, fn func(key []byte, st store.Value)) (next Position, more bool) {
	if ahead := s.Wall.Load(); ahead != 0 {
		told := fn
		fn = func(key []byte, st store.Value) { told(key, inWall(st, ahead)) }
	}
	if from.shard == len(s.All) {
		return from, from.renames.tell(nowNS, s.WallNS(nowNS), fn)
	}
	sh := &s.All[from.shard]
	sh.Lock(nowNS)
	from.renames.lock()
	from.tag = sh.export(uint32(from.tag), nowNS, from.renames.others(fn))
	if from.tag > maxTag {
		from.shard, from.tag = from.shard+1, 0
	}
	from.renames.unlock(from)
	sh.Unlock()
	return from, from.shard < len(s.All) || from.renames.any()
}

const maxTag = 1<<32 - 1

// export tells of the keys in the segment of a tag from that tag on, and returns the first tag that is to come.
func (sh *Shard) export(from uint32, nowNS int64, fn func(key []byte, st store.Value)) (next uint64) {
	var buffer [table.SegmentEntries]uint64
	entries, next := sh.Index.AppendSegment(buffer[:0], from)
	mostBytes := int64(math.MaxInt64)
	if sh.Keys.Huge.FreePlaces.InUse+sh.Limits.Rings.FreePlaces.InUse > 0 { // they may be many bytes, so it may stop within
		mostBytes = bytesPerLock
		slices.Sort(entries)
	}
	var sum uint64
	for _, entry := range entries { // their cache misses overlap: see Shards.Touch
		sum += sh.Slabs.At(uint32(entry)).Touch()
	}
	keep(sum)
	var scratch [table.HugeKey]byte
	told := int64(0)
	for i, entry := range entries {
		if told >= mostBytes && table.TagOf(entry) != table.TagOf(entries[i-1]) {
			return uint64(table.TagOf(entry))
		}
		n := uint32(entry)
		e := sh.Slabs.At(n)
		if sh.Dead(n, e, nowNS) {
			continue
		}
		if st := sh.full(n, e); !over(st, nowNS, nowNS+sh.Wall.Load()) {
			told += sh.CostBytes(n, e)
			fn(sh.Keys.View(e, &scratch), st)
		}
	}
	return next
}

// renameLog notes the renames that an export would miss: those that move a key from where the export has not been yet to where it will
// not come again. Such a key is told at the end under its old name, as it was before: its new name may have been told, and no name
// may be told twice. If the old name comes back meanwhile, that is not told.
//
// All methods do nothing on nil.
type renameLog struct {
	mu    sync.Mutex
	at    uint64 // the place of the export
	keys  map[string]store.Value
	bytes int // of keys; those that are more than mostRenamed are missed
}

// mostRenamed is how many bytes of keys, and 64 for each, an export remembers: 100,000 renames of keys of 100 bytes.
const mostRenamed = 16 << 20

// Position is a place in the order of Export; the zero value is its start.
type Position struct {
	shard   int
	tag     uint64     // the lowest tag that is still to come
	renames *renameLog // nil: renames may be missed
}

// place is where a key stands in the order of an export.
func place(shard int, tag uint64) uint64 { return uint64(shard)<<33 | tag }

func (s *Shards) placeOf(key []byte) uint64 {
	hash := s.Hash(key)
	return place(s.shardIndex(hash), uint64(table.TagOfHash(hash)))
}

// StartExport returns the start of an export that misses no key that is renamed, up to 16 MB of them. EndExport must follow.
func (s *Exports) StartExport() Position {
	m := &renameLog{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, m)
	return Position{renames: m}
}

// EndExport ends an export, done or not, by any position in it.
func (s *Exports) EndExport(p Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.running {
		if m == p.renames {
			s.running = append(s.running[:i:i], s.running[i+1:]...)
			return
		}
	}
}

// Exports are those under way, one or two: a snapshot and a rewrite of the append-only file.
type Exports struct {
	*Shards
	mu      sync.Mutex
	running []*renameLog
}

// noteRename tells the exports under way of a key that is about to be renamed. Both shards are locked, so that no export passes
// either key meanwhile.
func (s *Exports) noteRename(from, to []byte, st store.Value) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	for _, m := range running {
		m.mu.Lock()
		if s.placeOf(from) >= m.at && (s.placeOf(to) < m.at || m.has(to)) {
			m.note(from, st)
		}
		m.mu.Unlock()
	}
}

func (m *renameLog) has(key []byte) bool {
	_, noted := m.keys[string(key)]
	return noted
}

func (m *renameLog) note(key []byte, st store.Value) {
	if m.has(key) || m.bytes >= mostRenamed {
		return
	}
	if m.keys == nil {
		m.keys = make(map[string]store.Value)
	}
	m.bytes += removedBytes(key)
	if st.Limits != nil {
		limits := st.Limits.Clone()
		st.Limits = &limits
		m.bytes += int(bytesOfLimits(limits))
	}
	m.keys[string(key)] = st
}

func (m *renameLog) lock() {
	if m != nil {
		m.mu.Lock()
	}
}

// unlock also notes how far the export has come.
func (m *renameLog) unlock(p Position) {
	if m != nil {
		m.at = place(p.shard, p.tag)
		m.mu.Unlock()
	}
}

// others is fn for the keys whose names will not be told at the end. The log stays locked while it is used.
func (m *renameLog) others(fn func(key []byte, st store.Value)) func(key []byte, st store.Value) {
	if m == nil || len(m.keys) == 0 {
		return fn
	}
	return func(key []byte, st store.Value) {
		if !m.has(key) {
			fn(key, st)
		}
	}
}

func (m *renameLog) any() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.keys) > 0
}

// tell tells fn a few of them, and whether there are more.
func (m *renameLog) tell(nowNS, wallNS int64, fn func(key []byte, st store.Value)) (more bool) {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	told := 0
	for key, st := range m.keys {
		if told == PerLock {
			return true
		}
		told++
		delete(m.keys, key)
		if !over(st, nowNS, wallNS) {
			fn([]byte(key), st)
		}
	}
	return false
}
