package store

import "bytes"

// Rename moves the state of one key to another, over whatever was there, in one step for every other call. It returns
// false when there is no such key. The key counts as touched; renamed to itself it stays as it is.
//
// A rename needs no room but what a longer name takes, and is never refused. If that is too much for MaxBytes, others
// are evicted; with NoEviction, as in Redis, it is let pass.
func (s *Store) Rename(from, to []byte, nowNS int64) bool {
	if !s.rename(from, to, nowNS) {
		return false
	}
	s.trim(nowNS)
	return true
}

func (s *Store) rename(from, to []byte, nowNS int64) bool {
	fromHash, toHash := s.hash(from), s.hash(to)
	i, j := s.shardIndex(fromHash), s.shardIndex(toHash)
	source, target := &s.shards[i], &s.shards[j]
	s.shards[min(i, j)].lock(nowNS)
	defer s.shards[min(i, j)].mu.Unlock()
	if i != j {
		s.shards[max(i, j)].lock(nowNS)
		defer s.shards[max(i, j)].mu.Unlock()
	}
	a := Access{NowNS: nowNS, NoTouch: true}
	n, e := source.find(fromHash, from, a)
	if e == nil || bytes.Equal(from, to) {
		return e != nil
	}
	if o, old := target.find(toHash, to, a); old != nil {
		target.remove(o, old)
	}
	st, spent := source.full(n, e), e.spent() // unlink leaves the rings to us
	if st.over(nowNS, s.WallNS(nowNS)) {
		source.remove(n, e) // what it held was of a policy that is gone
		return true
	}
	if !spent {
		s.noteMove(from, to, st)
	}
	s.room.bytes.Add(costBytes(len(to)) + st.limitBytes() - source.costBytes(n, e))
	source.unlink(n, e, false)
	target.link(toHash, to, st, spent, nowNS)
	target.find(toHash, to, Access{NowNS: nowNS}) // a use of a key that was there
	return true
}
