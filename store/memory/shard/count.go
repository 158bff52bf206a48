package shard

import (
	"celld/store"
	"celld/store/memory/table"
)

// CountBatch adds to 1 to MaxTakes keys in their order, and overlaps cache misses as ThrottleBatch does. It always returns true, and
// ignores the Waker.
func (s *Shards) CountBatch(reqs []store.CountRequest, a store.Access, _ store.Waker) bool {
	for i := range reqs {
		reqs[i].Hash = s.Hash(reqs[i].Key)
	}
	var b *Prefetch
	if len(reqs) > 1 && s.Large() {
		b = &Prefetch{}
		for i := range reqs {
			b.Add(reqs[i].Hash)
		}
		s.Touch(b)
	}
	wallNS := s.WallNS(a.NowNS)
	f := LockFree{Store: s}
	var c Counts
	for i := range reqs {
		r := &reqs[i]
		f.GuessFrom(b, i)
		if !f.tryCount(s.ShardOf(r.Hash), r, a, wallNS) {
			s.count(r, a, wallNS)
			continue
		}
		if f.passed {
			c.changes++ // as in Redis, INCR neither hits nor misses
		}
		if f.pending {
			f.done(r.Hash, r.Key, a)
		}
	}
	s.Lane(a).Count(c)
	return true
}

// count decides on a request under the lock.
func (s *Shards) count(r *store.CountRequest, a store.Access, wallNS int64) {
	err := s.Update(r.Key, a, func(is store.Value, there bool) (store.Value, bool) { return r.Decide(is, there, wallNS) })
	if err != nil {
		r.Value, r.Added, r.Err = 0, 0, err
	}
}

// tryCount decides on a request for a count that is there and keeps its expiry, as nearly all are, if it can. It does not read the expiry,
// for which it would need the lock: while no key of the shard has ended, this one has not. So it first removes one that has, or sorts anew
// those that only seem to have. With the lock and the expiry, it took 430 ns instead of 190.
func (f *LockFree) tryCount(sh *Shard, r *store.CountRequest, a store.Access, wallNS int64) bool {
	if sh.NextEndNS.Load() <= uint64(a.NowNS) {
		sh.Lock(a.NowNS)
		sh.sweep(a.NowNS, 1)
		sh.Unlock()
	}
	if !f.look(sh, r.Hash, r.Key, table.FlagCount, table.FlagCount, a) {
		return false
	}
	expires := uint64(f.info)&table.FlagExpiry != 0
	if expires && sh.NextEndNS.Load() <= uint64(a.NowNS) || r.Expire != store.KeepExpiry && !(r.IfNone && expires) {
		return false
	}
	n := int64(f.tat)
	r.Value, r.Added, r.Met, r.Err = n, 0, r.Only != store.IfAbsent, nil
	next, added := n, false
	if r.Met {
		next, added, r.Err = r.Add(n)
	}
	switch {
	case !added:
		if !f.valid() {
			return false
		}
	case next > wallNS || !f.begin():
		return false
	case f.e.TAT.Load() != f.tat:
		f.end()
		return false
	default:
		f.e.TAT.Store(uint64(next))
		f.changed()
		r.Value, r.Added = next, next-n
	}
	f.used(f.info.TouchedNS(), a)
	return true
}
