package store

import (
	"iter"
	"sync/atomic"
)

// touchFromKeys is how many keys a table has from which on a batch touches it. A smaller one is in the caches anyhow, and
// touching it would cost 20 ns a call.
const touchFromKeys = 1 << 14

// batch is what is noted on at most perLock requests.
type batch struct {
	n      int
	hashes [perLock]uint64  // of their keys
	large  bool             // the table is larger than the caches
	slots  [perLock]uint32  // where each request's key seems to be, or noSlot; if large
	next   [perLock]uint8   // the place of the next request for the same shard + 1
	first  [maxShards]uint8 // for each shard, of its first request
}

func (b *batch) add(hash uint64) {
	b.hashes[b.n] = hash
	b.n++
}

// group links the requests of each shard to one another, and touches what it can only find then.
func (s *Store) group(b *batch) {
	for i := b.n - 1; i >= 0; i-- {
		first := &b.first[s.shardIndex(b.hashes[i])%maxShards]
		b.next[i], *first = *first, uint8(i+1)
	}
	if b.large {
		s.touchNeighbours(b)
	}
}

// groups yields the shards that have requests, with the place of the first of each + 1.
func (s *Store) groups(b *batch) iter.Seq2[*shard, uint8] {
	return func(yield func(*shard, uint8) bool) {
		for i := range s.shards {
			if first := b.first[i%maxShards]; first != 0 && !yield(&s.shards[i], first) {
				return
			}
		}
	}
}

// touch brings what the requests need into the caches, if the table is larger than the caches. It takes no lock, so what it sees
// may be changing. It returns true when the table is so large and all keys seem to be there.
//
// Addresses are collected first and then touched in loops of a few instructions, as a processor looks only some hundred
// instructions past a load that waits: with a look-up between two touches that is five misses at a time.
func (s *Store) touch(b *batch) (allThere bool) {
	if b.large = s.room.keys.Load() >= touchFromKeys; !b.large {
		return false
	}
	var sum uint64
	var lines [perLock]*atomic.Uint64
	n := 0
	for _, hash := range b.hashes[:b.n] {
		if lines[n] = s.shardOf(hash).index.peek(tagOfHash(hash)); lines[n] != nil {
			n++
		}
	}
	for _, line := range lines[:n] {
		sum += line.Load()
	}
	var slots [perLock]*slot
	n = 0
	for i, hash := range b.hashes[:b.n] {
		sh := s.shardOf(hash)
		b.slots[i] = sh.index.peekSlot(tagOfHash(hash))
		if slots[n] = sh.slabs.peek(b.slots[i]); slots[n] != nil && b.slots[i] != noSlot {
			n++
		}
	}
	for _, e := range slots[:n] {
		sum += e.touch()
	}
	keep(sum)
	return n == b.n
}

// touchNeighbours touches the slots before and after those of the requests in the order of use: taking one out changes their
// links. It looks them up under the locks, and touches them without.
func (s *Store) touchNeighbours(b *batch) {
	var slots [2 * perLock]*slot
	n := 0
	for sh, first := range s.groups(b) {
		sh.mu.Lock()
		for i := first; i != 0; i = b.next[i-1] {
			number := b.slots[i-1]
			if number >= sh.slabs.top { // a flush came in between
				continue
			}
			e := sh.slabs.at(number)
			slots[n], slots[n+1] = sh.slabs.at(e.older()), sh.slabs.at(e.younger())
			n += 2
		}
		sh.mu.Unlock()
	}
	var sum uint64
	for _, e := range slots[:n] {
		sum += e.touch()
	}
	keep(sum)
}

// keep takes the sum of loads, so that the compiler does not leave them out.
//
//go:noinline
func keep(uint64) {}
