package memory

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// Take decides on 1 to MaxLimits calls at one instant: it grants all of them or none. Calls that share a key and its state add
// up. It ignores what the calls hold of an earlier Take. It holds the locks of all keys, which it takes in the order of shards.
// The errors are ErrTooManyLimits, ErrTwoLimits, ErrWrongType and ErrFull.
//
// A denied call changes nothing but a block. There is one exception: the first call with another limit carries the state over
// to that limit, and this is stored even when the call is denied, so that the retry after that it returns is exact. A peek changes
// nothing, so it tells what a call at that instant would be told.
func (s *takes) Take(calls []store.Call, o store.TakeOptions, a store.Access) (store.Taken, error) {
	reqs := [1]store.TakeRequest{{Calls: calls, TakeOptions: o}}
	s.TakeBatch(reqs[:], a, nil)
	return reqs[0].Taken, reqs[0].Err
}

// TakeBatch decides on 1 to MaxTakes requests in their order, as that many Takes would, and overlaps cache misses as ThrottleBatch
// does.
//
// It returns false for a single request that waits: see Limiter. Where there are several, or the Waker is nil, one that would wait is
// denied. A request with Terms must not be used by two calls at once.
func (s *takes) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	for i := range reqs {
		reqs[i].Hash = s.Hash(reqs[i].Calls[0].Key)
	}
	if len(reqs) == 1 || !s.large() {
		if len(reqs) > 1 {
			w = nil
		}
		return s.takeAll(reqs, nil, a, w)
	}
	var b batch
	for i := range reqs {
		b.add(reqs[i].Hash)
	}
	s.touch(&b)
	s.touchTallies(&b)
	return s.takeAll(reqs, &b, a, nil)
}

// takeAll decides: see throttleAll. It returns false where the request waits, which it may with a Waker only.
func (s *takes) takeAll(reqs []store.TakeRequest, b *batch, a store.Access, w store.Waker) bool {
	ruled := s.policies.HasRules()
	f := free{store: s.shards}
	var c counts
	waits := false
	for i := range reqs {
		r := &reqs[i]
		f.guessFrom(b, i)
		f.absent = false
		if r.Cost <= 0 || ruled || r.Terms != nil || !f.take(s.shardOf(r.Hash), r, a) {
			waits = s.answer(r, f.absent, a, w)
			continue
		}
		f.finish(&c, r.Hash, r.Calls[0].Key, a)
	}
	s.lane(a).count(c)
	return !waits
}

// answer decides on a request under the locks of its keys. absent says that a single key seems not to be there. It returns true for
// one that waits, for which there must be a Waker: that may have been woken already.
func (s *takes) answer(r *store.TakeRequest, absent bool, a store.Access, w store.Waker) (waits bool) {
	if r.Cost < 0 {
		s.answerGive(r, a)
		return false
	}
	if r.Cost == 0 {
		r.Mode = cell.Peek
	}
	if r.Terms == nil && len(r.Calls) == 1 && !absent {
		sh := s.shardOf(r.Hash)
		sh.lock(a.NowNS)
		done := s.takeOne(sh, r, a)
		sh.unlock()
		if done {
			return false
		}
	}
	return s.takeAny(r, a, turn{waker: w})
}

// touchTallies touches the first tallies of the requests' keys.
func (s *shards) touchTallies(b *batch) {
	var sum uint64
	for i, e := range b.slots[:b.n] {
		if e == nil {
			continue
		}
		if info := e.Info.Load(); info&table.FlagLimits != 0 {
			if p := s.shardOf(b.hashes[i]).Tallies.Peek(uint32(info)); p != nil {
				sum += p.A.Load()
			}
		}
	}
	keep(sum)
}

// takeOne answers a plain request under a key that is there and holds nothing but its limit, as nearly all are. Its shard is
// locked. It reports false, and has decided nothing, where the request is any other.
func (s *takes) takeOne(sh *shard, r *store.TakeRequest, a store.Access) (done bool) {
	c := &r.Calls[0]
	if !isPlain(r) || s.policies.HasRules() || c.Limit.HoldsLeases() {
		return false
	}
	n, e := sh.meet(r.Hash, c.Key, a)
	if e == nil || !e.HoldsLimits() || e.Has(table.FlagsOfState|table.FlagWaited) {
		return false
	}
	p := sh.Tallies.At(e.FirstTally())
	if !p.Alone(c.Limit, c.Policy) {
		return false
	}
	st := sh.Tallies.State(p)
	at := sh.TimeOf(c.Limit, a.NowNS)
	if blockedTooLong(c, &st, at) || c.Limit.HasRing() && !c.Limit.Fits(&st) { // room for more is to be had first
		return false
	}
	sh.counters.hits++
	c.Decision = c.Limit.Decide(&st, at, r.Cost, cell.Take)
	if !c.Decision.Limited || p.BlockedNS.Load() != st.BlockedNS {
		p.SetState(&st)
		sh.putEnd(n, e, uint64(a.NowNS)+c.Decision.ResetAfterNS, c.Key)
	}
	answerOne(r)
	return true
}
