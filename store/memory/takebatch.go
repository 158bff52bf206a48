package memory

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
)

// Take decides on 1 to MaxLimits calls at one instant: it grants all of them or none. Calls that share a key and its state add
// up. It ignores the answers of an earlier Take in the calls. It locks the shards of all keys, in their order.
// The errors are ErrTooManyLimits, ErrTwoLimits, ErrWrongType and ErrFull.
//
// A denied call changes nothing except a block. There is one exception: the first call with another limit carries the state over to that
// limit. This is stored even if the call is denied, so that the retry after that it returns is exact. A peek changes nothing, so it tells
// what a call at that instant would be told.
func (s *takes) Take(calls []store.Call, o store.TakeOptions, a store.Access) (store.Taken, error) {
	reqs := [1]store.TakeRequest{{Calls: calls, TakeOptions: o}}
	s.TakeBatch(reqs[:], a, nil)
	return reqs[0].Taken, reqs[0].Err
}

// TakeBatch decides on 1 to MaxTakes requests in their order, as that many Takes would, and overlaps cache misses as ThrottleBatch
// does.
//
// It returns false for a single request that waits: see Limiter. If there are several, or the Waker is nil, it denies one that would wait.
// A request with Terms must not be used by two calls at once.
func (s *takes) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	for i := range reqs {
		reqs[i].Hash = s.Hash(reqs[i].Calls[0].Key)
	}
	if len(reqs) == 1 || !s.Large() {
		if len(reqs) > 1 {
			w = nil
		}
		return s.takeAll(reqs, nil, a, w)
	}
	var b shard.Prefetch
	for i := range reqs {
		b.Add(reqs[i].Hash)
	}
	s.Touch(&b)
	s.TouchLimits(&b)
	return s.takeAll(reqs, &b, a, nil)
}

// takeAll decides: see shard.Shards.ThrottleBatch. It returns false if the request waits, for which there must be a Waker.
func (s *takes) takeAll(reqs []store.TakeRequest, b *shard.Prefetch, a store.Access, w store.Waker) bool {
	ruled := s.HasRules()
	f := shard.LockFree{Store: s.Shards}
	var c shard.Counts
	waits := false
	for i := range reqs {
		r := &reqs[i]
		f.GuessFrom(b, i)
		f.Absent = false
		if r.Cost <= 0 || ruled || r.Terms != nil || !f.TryTake(s.ShardOf(r.Hash), r, a) {
			waits = s.answer(r, f.Absent, a, w)
			continue
		}
		f.Finish(&c, r.Hash, r.Calls[0].Key, a)
	}
	s.Lane(a).Count(c)
	return !waits
}

// answer decides on a request under the locks of its keys. absent says that a single key seems not to be there. It returns true for
// one that waits, for which there must be a Waker: that may have been woken already.
func (s *takes) answer(r *store.TakeRequest, absent bool, a store.Access, w store.Waker) (waits bool) {
	if r.Cost < 0 {
		s.answerGive(r, a)
		return false
	}
	if r.Cost == 0 && !r.Takes() {
		r.Mode = cell.Peek
	}
	if r.Terms == nil && len(r.Calls) == 1 && !absent {
		sh := s.ShardOf(r.Hash)
		sh.Lock(a.NowNS)
		done := sh.TakePlain(r, a)
		sh.Unlock()
		if done {
			return false
		}
	}
	return s.takeAny(r, a, caller{waker: w})
}
