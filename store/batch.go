package store

import "celld/cell"

const (
	// A smaller table is in the caches anyhow, and to touch it costs 20 ns a call.
	touchFromKeys = 1 << 14

	// With more shards a batch has hardly two requests for one.
	mostGroups = 64
)

// Request is one call of a batch.
type Request struct {
	Key      []byte
	Limit    cell.Limit
	Quantity int64
	Decision cell.Decision // out
	Err      error         // out
	hash     uint64
}

// ThrottleBatch decides on the requests in their order, as that many Throttle calls would, and overlaps their cache
// misses: in a table that is larger than the caches these are nearly all that a call costs. It first computes all
// hashes, then touches all lines of the index, then all slots, and then decides.
//
// As long as no request must wait for room, none can have an effect on one for a key of another shard. Then those of one
// shard are decided under one lock, which also lets their neighbours in the order of use be touched ahead.
func (s *Store) ThrottleBatch(reqs []Request, a Access) {
	for len(reqs) > perLock {
		s.throttleSome(reqs[:perLock], a)
		reqs = reqs[perLock:]
	}
	s.throttleSome(reqs, a)
}

func (s *Store) throttleSome(reqs []Request, a Access) {
	if len(reqs) == 1 {
		reqs[0].hash = s.hash(reqs[0].Key)
		s.decide(&reqs[0], a)
		return
	}
	var b batch
	var cost int64
	for i := range reqs {
		reqs[i].hash = s.hash(reqs[i].Key)
		cost += costBytes(len(reqs[i].Key))
	}
	b.large = s.room.keys.Load() >= touchFromKeys
	allThere := b.large && s.touch(&b, reqs)
	if len(s.shards) <= mostGroups && (allThere || s.room.fits(int64(len(reqs)), cost)) {
		s.decideByShard(&b, reqs, a)
		return
	}
	for i := range reqs {
		s.decide(&reqs[i], a)
	}
}

// batch is what is noted on at most perLock requests.
type batch struct {
	large bool              // the table is larger than the caches
	slots [perLock]uint32   // where each request's key seems to be, or noSlot; if large
	next  [perLock]uint8    // the place of the next request for the same shard + 1
	first [mostGroups]uint8 // for each shard, of its first request
}

// touch brings what the requests need into the caches, without any lock: what it sees may be changing. It returns
// whether all keys seem to be there.
func (s *Store) touch(b *batch, reqs []Request) bool {
	var sum uint64
	for i := range reqs {
		hash := reqs[i].hash
		sum += s.shardOf(hash).index.peek(tagOfHash(hash))
	}
	there := 0
	for i := range reqs {
		hash := reqs[i].hash
		sh := s.shardOf(hash)
		b.slots[i] = sh.index.peekSlot(tagOfHash(hash))
		if e := sh.slabs.peek(b.slots[i]); e != nil && b.slots[i] != noSlot {
			sum += e.touch()
			there++
		}
	}
	keep(sum)
	return there == len(reqs)
}

// touchNeighbours does so for the slots that will be linked anew, where those of the shard's requests are taken out of the
// order of use. The shard is locked.
func (sh *shard) touchNeighbours(b *batch, first uint8) {
	var sum uint64
	for i := first; i != 0; i = b.next[i-1] {
		if n := b.slots[i-1]; n < sh.slabs.top {
			e := sh.slabs.at(n)
			sum += sh.slabs.at(e.older()).use + sh.slabs.at(e.younger()).use
		}
	}
	keep(sum)
}

// keep keeps the compiler from leaving out the loads whose sum it is given.
//
//go:noinline
func keep(uint64) {}

// decideByShard decides on those of one shard after the other.
func (s *Store) decideByShard(b *batch, reqs []Request, a Access) {
	for i := len(reqs) - 1; i >= 0; i-- {
		first := &b.first[s.shardIndex(reqs[i].hash)%mostGroups]
		b.next[i], *first = *first, uint8(i+1)
	}
	for shard := range s.shards {
		first := b.first[shard%mostGroups]
		if first == 0 {
			continue
		}
		sh := &s.shards[shard]
		sh.lock(a.NowNS)
		if b.large {
			sh.touchNeighbours(b, first)
		}
		for i := first; i != 0; i = b.next[i-1] {
			s.decideLocked(sh, &reqs[i-1], a)
		}
		sh.mu.Unlock()
	}
}
