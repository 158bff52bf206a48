package shard

import "celld/store/memory/table"

// touchFromKeys is how many keys a table has from which on a batch touches it. A smaller one is in the caches anyhow, and
// touching it would cost 20 ns a call.
const touchFromKeys = 1 << 14

// Batch is what is noted on at most perLock requests.
type Batch struct {
	n      int
	hashes [PerLock]uint64      // of their keys
	slots  [PerLock]*table.Slot // that seem to be their keys', or nil

	flushes uint64 // before slots were looked for
}

func (b *Batch) Add(hash uint64) {
	b.hashes[b.n] = hash
	b.n++
}

// Large reports whether the table is larger than the caches.
func (s *Shards) Large() bool { return s.Room.Keys.Load() >= touchFromKeys }

// Touch brings what the requests need into the caches, and notes where their keys seem to be. It takes no lock, so what it sees
// may be changing.
//
// Addresses are collected first and then touched in loops of a few instructions, as a processor looks only some hundred
// instructions past a load that waits: with a look-up between two touches that is five misses at a time.
func (s *Shards) Touch(b *Batch) {
	b.flushes = s.flushes.Load()
	var sum uint64
	var chunks [PerLock]*table.Chunk
	for i, hash := range b.hashes[:b.n] {
		chunks[i] = s.ShardOf(hash).Index.Peek(table.TagOfHash(hash))
	}
	for i, hash := range b.hashes[:b.n] {
		sum += chunks[i].Touch(table.TagOfHash(hash))
	}
	for i, hash := range b.hashes[:b.n] {
		p := chunks[i].Find(table.TagOfHash(hash))
		if n := p.Next(); n != table.NoSlot {
			b.slots[i] = s.ShardOf(hash).Slabs.Peek(n)
		}
	}
	for _, e := range b.slots[:b.n] {
		if e != nil {
			sum += e.Touch()
		}
	}
	keep(sum)
}

// keep takes the sum of loads, so that the compiler does not leave them out.
//
//go:noinline
func keep(uint64) {}

// TouchTallies touches the first tallies of the requests' keys.
func (s *Shards) TouchTallies(b *Batch) {
	var sum uint64
	for i, e := range b.slots[:b.n] {
		if e == nil {
			continue
		}
		if info := e.Info.Load(); info&table.FlagLimits != 0 {
			if p := s.ShardOf(b.hashes[i]).Tallies.Peek(uint32(info)); p != nil {
				sum += p.A.Load()
			}
		}
	}
	keep(sum)
}
