package shard

import (
	"math"
	"math/rand/v2"

	"celld/store"
	"celld/store/memory/table"
)

// A cursor is a shard in the bits from 32 up, and in the low 32 the slot to go on with. It stays below 2^42, so that
// clients that hold numbers as float64 keep it.
const shardShift = 32

// Scan calls fn for some of the live keys and returns the cursor to go on with. Cursor 0 starts; a returned 0 ends. It
// looks at count places (1 if less), and calls fn, with no lock held, for the live keys in them: count at most, or none
// though there are more. Any cursor is safe; one that Scan never returned may skip keys.
//
// A key keeps its slot as long as it is there, also when another is renamed to it, and slots are visited in their order. So a key that is
// there from the first call to the last is delivered once. A key that is deleted and put again meanwhile may be delivered twice.
func (s *Shards) Scan(cursor uint64, count int, nowNS int64, fn func(key string, st store.Value)) (next uint64) {
	type item struct {
		key   string
		state store.Value
	}
	count = max(count, 1)
	batch := make([]item, 0, min(count, PerLock))
	var scratch [table.HugeKey]byte
	for index := cursor >> shardShift; count > 0 && index < uint64(len(s.All)); index = cursor >> shardShift {
		sh := &s.All[index]
		batch = batch[:0]
		places := min(count, PerLock)
		n, left := uint32(cursor), places*emptyPerPlace
		sh.Lock(nowNS)
		for ; places > 0; places-- {
			if n, left = sh.Slabs.Next(n, left); left == 0 {
				break
			}
			if e := sh.Slabs.At(n); !sh.Dead(n, e, nowNS) && sh.purge(n, e, nowNS) {
				batch = append(batch, item{string(sh.Keys.View(e, &scratch)), inWall(sh.State(n, e), s.Wall.Load())})
			}
			n++
			count--
		}
		cursor = index<<shardShift | uint64(n)
		if n >= sh.Slabs.Top {
			cursor = (index + 1) << shardShift
		} else {
			count -= places // what is left of them has gone to free slots
		}
		sh.Unlock()
		for _, it := range batch {
			fn(it.key, it.state)
		}
	}
	if cursor>>shardShift >= uint64(len(s.All)) {
		return 0
	}
	return cursor
}

// Len returns the number of live keys. It first removes dead ones, for two milliseconds or so. If more than some 1,000 keys have died since
// the last sweep, it counts those that Sweep has yet to remove, as Redis counts expired keys until they are gone.
func (s *Sweeper) Len(nowNS int64) int {
	for left := lenSweeps; left > 0 && s.Sweep(nowNS); left-- {
	}
	return int(s.Room.Keys.Load())
}

// lenSweeps handle 4,096 keys. Some 1,000 of them are removed, as each is sorted anew about three times before.
const lenSweeps = 4096 / PerLock

// mostRandom is how many keys Random looks at. So many of a million that have just expired take 0.3 ms.
const mostRandom = 1000

// Random returns a live key, each with the same probability, or false if it has met none. It does not touch it.
func (s *Sweeper) Random(nowNS int64) (string, bool) {
	for left := lenSweeps; left > 0 && s.Sweep(nowNS); left-- {
	}
	for range mostRandom {
		var total int64
		for i := range s.All {
			total += s.All[i].Held.Load()
		}
		if total == 0 {
			return "", false
		}
		place := rand.Int64N(total)
		for i := range s.All {
			sh := &s.All[i]
			if held := sh.Held.Load(); place >= held {
				place -= held
				continue
			}
			if key, ok := sh.random(nowNS); ok {
				return key, true
			}
			break // it was dead, or went in the meantime
		}
	}
	return "", false
}

// random returns a live key of the shard. It tries slots until one is in use; where few are, the first in use after one.
func (sh *Shard) random(nowNS int64) (string, bool) {
	const tries = 64
	sh.Lock(nowNS)
	defer sh.Unlock()
	if sh.InUse == 0 {
		return "", false
	}
	var n uint32
	for range tries {
		n = 1 + rand.Uint32N(sh.Slabs.Top-1)
		if sh.Slabs.At(n).List() != table.NoList {
			break
		}
	}
	n, left := sh.Slabs.Next(n, math.MaxInt)
	if left == 0 {
		n, _ = sh.Slabs.Next(0, math.MaxInt)
	}
	e := sh.Slabs.At(n)
	if sh.Dead(n, e, nowNS) || !sh.purge(n, e, nowNS) {
		return "", false // it went while the lock was waited for
	}
	var scratch [table.HugeKey]byte
	return string(sh.Keys.View(e, &scratch)), true
}
