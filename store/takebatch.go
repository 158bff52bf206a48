package store

// TakeRequest is one Take of a batch.
//
// A Cost below 0 gives back, as Give does. Then there must be one call, whose Decision is not set, and Granted is minus the
// amount that was given back.
type TakeRequest struct {
	Calls []Call
	TakeOptions
	Taken Taken // out
	Err   error // out
	hash  uint64
}

// TakeBatch decides on 1 to MaxTakes requests in their order, as that many Takes would, and overlaps cache misses as ThrottleBatch
// does. It always returns true, and has no use for the Waker.
func (s *Store) TakeBatch(reqs []TakeRequest, a Access, _ Waker) bool {
	for i := range reqs {
		reqs[i].hash = s.hash(reqs[i].Calls[0].Key)
	}
	if len(reqs) == 1 || !s.large() {
		s.takeAll(reqs, nil, a)
		return true
	}
	var b batch
	for i := range reqs {
		b.add(reqs[i].hash)
	}
	s.touch(&b)
	s.touchTallies(&b)
	s.takeAll(reqs, &b, a)
	return true
}

// takeAll decides: see throttleAll.
func (s *Store) takeAll(reqs []TakeRequest, b *batch, a Access) {
	ruled := s.HasRules()
	f := free{store: s}
	var c counts
	for i := range reqs {
		r := &reqs[i]
		f.guessFrom(b, i)
		f.absent = false
		if r.Cost <= 0 || ruled || !f.take(s.shardOf(r.hash), r, a) {
			s.answer(r, f.absent, a)
			continue
		}
		f.finish(&c, r.hash, r.Calls[0].Key, a)
	}
	s.lane(a).count(c)
}

// touchTallies touches the first tallies of the requests' keys.
func (s *Store) touchTallies(b *batch) {
	var sum uint64
	for i, e := range b.slots[:b.n] {
		if e == nil {
			continue
		}
		if info := e.info.Load(); info&flagLimits != 0 {
			if p := s.shardOf(b.hashes[i]).tallies.peek(uint32(info)); p != nil {
				sum += p.a.Load()
			}
		}
	}
	keep(sum)
}

// MaxTakes is how many requests there may be in a TakeBatch.
const MaxTakes = perLock
