package memory

import (
	"celld/store"
	"celld/store/memory/table"
)

// TakeBatch decides on 1 to MaxTakes requests in their order, as that many Takes would, and overlaps cache misses as ThrottleBatch
// does.
//
// It returns false for a single request that waits: see Limiter. Where there are several, or the Waker is nil, one that would wait is
// denied. A request with Terms must not be used by two calls at once.
func (s *Store) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	for i := range reqs {
		reqs[i].Hash = s.hash(reqs[i].Calls[0].Key)
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
func (s *Store) takeAll(reqs []store.TakeRequest, b *batch, a store.Access, w store.Waker) bool {
	ruled := s.HasRules()
	f := free{store: s}
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

// touchTallies touches the first tallies of the requests' keys.
func (s *Store) touchTallies(b *batch) {
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
