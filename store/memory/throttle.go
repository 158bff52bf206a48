package memory

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
func (s *shards) Throttle(key []byte, l cell.Bucket, quantity int64, a store.Access) (cell.Decision, error) {
	var reqs [1]store.Request // filled word by word: see setDecision
	reqs[0].Key, reqs[0].Bucket, reqs[0].Quantity = key, l, quantity
	s.ThrottleBatch(reqs[:], a, nil)
	return reqs[0].Decision, reqs[0].Err
}

// ThrottleBatch decides on 1 to MaxTakes requests in their order, as that many Throttle calls would, and overlaps their
// cache misses: in a table that is larger than the caches these are nearly all that a call costs. It first computes all
// hashes, then touches all lines of the index, then all slots, and then decides. It always returns true, and has no use for the
// Waker.
func (s *shards) ThrottleBatch(reqs []store.Request, a store.Access, _ store.Waker) bool {
	for i := range reqs {
		reqs[i].Hash = s.Hash(reqs[i].Key)
	}
	if len(reqs) == 1 || !s.large() {
		s.throttleAll(reqs, nil, a)
		return true
	}
	var b batch
	for i := range reqs {
		b.add(reqs[i].Hash)
	}
	s.touch(&b)
	s.throttleAll(reqs, &b, a)
	return true
}

// throttleAll decides. b has the slots where the requests' keys seem to be; it is nil if they have not been looked for.
func (s *shards) throttleAll(reqs []store.Request, b *batch, a store.Access) {
	ruled := s.HasRules()
	f := free{store: s}
	var c counts
	for i := range reqs {
		r := &reqs[i]
		if ruled && s.Ruled(r.Key, r.Bucket.Capacity(), a.NowNS, &r.Decision) {
			r.Err = nil
			continue
		}
		f.guessFrom(b, i)
		sh := s.shardOf(r.Hash)
		if !f.throttle(sh, r, a) {
			sh.lock(a.NowNS) // nothing below calls user code, so the unlock need not be deferred
			s.decideLocked(sh, r, f.stillAbsent(sh), a)
			sh.unlock()
			continue
		}
		f.finish(&c, r.Hash, r.Key, a)
	}
	s.lane(a).count(c)
}

func (s *shards) decideLocked(sh *shard, r *store.Request, absent bool, a store.Access) {
	var n uint32
	var e *table.Slot
	if !absent {
		n, e = sh.find(r.Hash, r.Key, a)
	}
	sh.countLookup(e)
	for {
		var tat uint64
		if e != nil && !e.Spent() {
			if e.HoldsLimits() {
				r.Decision, r.Err = cell.Decision{}, store.ErrWrongType
				return
			}
			tat = e.Held()
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
				sh.remove(n, e)
			} else {
				sh.put(n, e, next, r.Key)
			}
			return
		}
		if full {
			return
		}
		again, err := s.claim(sh, newKey(len(r.Key)), a.NowNS)
		if err != nil {
			r.Decision, r.Err = cell.Decision{}, err
			return
		}
		if !again {
			sh.link(r.Hash, r.Key, store.Value{TAT: next}, false, a.NowNS)
			return
		}
		n, e = sh.find(r.Hash, r.Key, a)
	}
}
