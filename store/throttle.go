package store

import "celld/cell"

// Throttle decides on a call under the key and remembers it. The error is a *cell.RangeError for the quantity, or
// ErrFull for a new key; then nothing has been stored.
//
// An allowed call of a quantity other than 0 puts the new TAT, with the expiry AtTAT whatever it was before, as
// redis-cell's SET does. A refund up to full deletes the key, and never creates one. Any other call changes nothing but
// the order of use. It allocates nothing for a key that is there.
func (s *Store) Throttle(key []byte, l cell.Bucket, quantity int64, a Access) (cell.Decision, error) {
	var r Request // filled word by word: see setDecision
	r.Key, r.Bucket, r.Quantity = key, l, quantity
	if s.HasRules() && s.ruled(&r, a.NowNS) {
		return r.Decision, nil
	}
	r.hash = s.hash(key)
	s.decide(&r, a)
	return r.Decision, r.Err
}

// ruled decides on a request by a rule, if one holds for its key.
func (s *Store) ruled(r *Request, nowNS int64) bool {
	rule := s.Rule(r.Key, nowNS)
	if rule != nil {
		r.Decision, r.Err = rule.Decision(r.Bucket.Capacity(), nowNS), nil
	}
	return rule != nil
}

// decide answers a request whose hash is set. Nothing it calls is the caller's, so it goes without a deferred Unlock.
func (s *Store) decide(r *Request, a Access) {
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

// setDecision is *to = *from, field by field. The compiler copies a struct 16 bytes at a time, and that must wait for
// the words just written to reach the cache: some 15 ns of a decision went there and in Throttle's copy of a Request.
func setDecision(to, from *cell.Decision) {
	to.Limited = from.Limited
	to.Limit = from.Limit
	to.Remaining = from.Remaining
	to.RetryAfterNS = from.RetryAfterNS
	to.ResetAfterNS = from.ResetAfterNS
}
