package shard

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// Throttle decides on a call under the key and remembers it. The error is a *cell.RangeError for the quantity, or
// ErrFull for a new key; then nothing has been stored.
//
// An allowed call of a quantity other than 0 puts the new TAT, with the expiry AtTAT whatever it was before, as
// redis-cell's SET does. A refund up to full deletes the key, and never creates one. Any other call changes nothing but
// the order of use. It allocates nothing for a key that is there.
func (s *Shards) Throttle(key []byte, l cell.Bucket, quantity int64, a store.Access) (cell.Decision, error) {
	var reqs [1]store.Request // filled word by word: see setDecision
	reqs[0].Key, reqs[0].Bucket, reqs[0].Quantity = key, l, quantity
	s.ThrottleBatch(reqs[:], a, nil)
	return reqs[0].Decision, reqs[0].Err
}

// ThrottleBatch decides on 1 to MaxTakes requests in their order, as that many Throttle calls would. It overlaps their cache misses, which
// are nearly the whole cost of a call in a table that is larger than the caches: it first computes all hashes, then touches all lines of
// the index, then all slots, and then decides. It always returns true, and ignores the Waker.
func (s *Shards) ThrottleBatch(reqs []store.Request, a store.Access, _ store.Waker) bool {
	for i := range reqs {
		reqs[i].Hash = s.Hash(reqs[i].Key)
	}
	if len(reqs) == 1 || !s.Large() {
		s.ThrottleAll(reqs, nil, a)
		return true
	}
	var b Prefetch
	for i := range reqs {
		b.Add(reqs[i].Hash)
	}
	s.Touch(&b)
	s.ThrottleAll(reqs, &b, a)
	return true
}

// ThrottleAll decides. p says where the requests' keys seem to be; nil: nobody has looked for them.
func (s *Shards) ThrottleAll(reqs []store.Request, b *Prefetch, a store.Access) {
	ruled := s.HasRules()
	f := LockFree{Store: s}
	var c Counts
	for i := range reqs {
		r := &reqs[i]
		if ruled && s.Ruled(r.Key, nil, r.Bucket.Capacity(), a.NowNS, &r.Decision) {
			r.Err = nil
			continue
		}
		f.GuessFrom(b, i)
		sh := s.ShardOf(r.Hash)
		if !f.tryThrottle(sh, r, a) {
			sh.Lock(a.NowNS) // nothing below calls user code, so the unlock need not be deferred
			s.decideLocked(sh, r, f.stillAbsent(sh), a)
			sh.Unlock()
			continue
		}
		f.Finish(&c, r.Hash, r.Key, a)
	}
	s.Lane(a).Count(c)
}

func (s *Shards) decideLocked(sh *Shard, r *store.Request, absent bool, a store.Access) {
	var n uint32
	var e *table.Slot
	if !absent {
		n, e = sh.Find(r.Hash, r.Key, a)
	}
	sh.CountLookup(e)
	for {
		var tat uint64
		if e != nil {
			if e.HoldsLimits() {
				r.Decision, r.Err = cell.Decision{}, store.ErrWrongType
				return
			}
			tat = e.SettledTAT()
		}
		next, d, err := r.Bucket.Throttle(tat, a.NowNS, r.Quantity)
		setDecision(&r.Decision, &d)
		r.Err = err
		if err != nil || d.Limited || r.Quantity == 0 {
			return
		}
		full := next <= uint64(a.NowNS)
		if e != nil {
			if full {
				sh.Remove(n, e)
			} else {
				sh.put(n, e, next, r.Key)
			}
			return
		}
		if full {
			return
		}
		again, err := s.claim(sh, NewKey(len(r.Key)), a.NowNS)
		if err != nil {
			r.Decision, r.Err = cell.Decision{}, err
			return
		}
		if !again {
			sh.Link(r.Hash, r.Key, store.Value{TAT: next}, a.NowNS)
			return
		}
		n, e = sh.Find(r.Hash, r.Key, a)
	}
}
