package store

import "celld/cell"

// Request is one call of a batch.
type Request struct {
	Key      []byte
	Bucket   cell.Bucket
	Quantity int64
	Decision cell.Decision // out
	Err      error         // out
	hash     uint64
}

// Throttle decides on a call under the key and remembers it. The error is a *cell.RangeError for the quantity, or
// ErrFull for a new key; then nothing has been stored.
//
// An allowed call of a quantity other than 0 puts the new TAT, with the expiry AtTAT whatever it was before, as
// redis-cell's SET does. A refund up to full deletes the key, and never creates one. Any other call changes nothing but
// the order of use. It allocates nothing for a key that is there.
func (s *Store) Throttle(key []byte, l cell.Bucket, quantity int64, a Access) (cell.Decision, error) {
	var r Request // filled word by word: see setDecision
	r.Key, r.Bucket, r.Quantity = key, l, quantity
	s.decide(&r, a)
	return r.Decision, r.Err
}

// ThrottleBatch decides on 1 to MaxTakes requests in their order, as that many Throttle calls would, and overlaps their
// cache misses: in a table that is larger than the caches these are nearly all that a call costs. It first computes all
// hashes, then touches all lines of the index, then all slots, and then decides.
//
// When no request must wait for room, requests for different shards have no effect on each other. Then those of one shard are
// decided under one lock. It always returns true, and has no use for the Waker.
func (s *Store) ThrottleBatch(reqs []Request, a Access, _ Waker) bool {
	if len(reqs) == 1 || s.HasRules() {
		s.decideEach(reqs, a)
		return true
	}
	var b batch
	var most need
	for i := range reqs {
		reqs[i].hash = s.hash(reqs[i].Key)
		b.add(reqs[i].hash)
		most.add(newKey(len(reqs[i].Key)))
	}
	if !s.touch(&b) && !s.room.fits(most) {
		s.decideEach(reqs, a)
		return true
	}
	s.group(&b)
	for sh, first := range s.groups(&b) {
		sh.lock(a.NowNS)
		for i := first; i != 0; i = b.next[i-1] {
			s.decideLocked(sh, &reqs[i-1], a)
		}
		sh.mu.Unlock()
	}
	return true
}

func (s *Store) decideEach(reqs []Request, a Access) {
	for i := range reqs {
		s.decide(&reqs[i], a)
	}
}

// ruled decides on a call by a rule, if one holds for its key. It stores nothing.
func (s *Store) ruled(key []byte, capacity, nowNS int64, d *cell.Decision) bool {
	r := s.Rule(key, nowNS)
	if r != nil {
		*d = r.Decision(capacity, nowNS)
	}
	return r != nil
}

// decide answers a request by itself. It calls no user code, so it does not need a deferred Unlock.
func (s *Store) decide(r *Request, a Access) {
	if s.HasRules() && s.ruled(r.Key, r.Bucket.Capacity(), a.NowNS, &r.Decision) {
		r.Err = nil
		return
	}
	r.hash = s.hash(r.Key)
	sh := s.shardOf(r.hash)
	sh.lock(a.NowNS)
	s.decideLocked(sh, r, a)
	sh.mu.Unlock()
}

func (s *Store) decideLocked(sh *shard, r *Request, a Access) {
	n, e := sh.find(r.hash, r.Key, a)
	sh.countLookup(e)
	for {
		var tat uint64
		if e != nil && !e.spent() {
			if e.holdsLimits() {
				r.Decision, r.Err = cell.Decision{}, ErrWrongType
				return
			}
			tat = e.tat
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
			sh.link(r.hash, r.Key, Value{TAT: next}, false, a.NowNS)
			return
		}
		n, e = sh.find(r.hash, r.Key, a)
	}
}

// setDecision is *to = *from, field by field. The compiler copies a struct 16 bytes at a time, and must then wait for the words
// just written to reach the cache. That took some 15 ns of a decision, together with Throttle's copy of a Request.
func setDecision(to, from *cell.Decision) {
	to.Limited = from.Limited
	to.Limit = from.Limit
	to.Remaining = from.Remaining
	to.RetryAfterNS = from.RetryAfterNS
	to.ResetAfterNS = from.ResetAfterNS
}
