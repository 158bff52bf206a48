package memory

import (
	"celld/cell"
	"celld/cell/lease"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/policy"
)

// Give gives back up to n of what was taken from a limit, and returns how much that was. It ends a block that began with the last of a
// limit. The errors are ErrWrongType and ErrFull; the latter only where a policy's limit has changed.
func (s *takes) Give(key []byte, l *cell.Limit, p *policy.Limit, n int64, a store.Access) (given int64, err error) {
	return s.GiveBack(key, l, p, n, 0, a)
}

// GiveBack is store.Leases's. It ends a block as Give does.
func (s *takes) GiveBack(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, a store.Access) (given int64, err error) {
	for more := n > 0; more && err == nil; {
		var some int64
		some, more, err = s.giveSome(key, l, p, n-given, takenNS, a)
		given += some
	}
	return given, err
}

// GiveSome is a step of Give: it ends at most lease.MostGiven leases, and says whether there may be more to give back.
func (s *takes) GiveSome(key []byte, l *cell.Limit, p *policy.Limit, n int64, a store.Access) (given int64, more bool, err error) {
	return s.giveSome(key, l, p, n, 0, a)
}

func (s *takes) giveSome(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, a store.Access) (
	given int64, more bool, err error,
) {
	var c call
	s.start(&c, &store.Call{Key: key, Limit: l, Policy: p})
	paid := shard.Prepaid{Store: s.Shards, Shard: c.sh}
	err = paid.Run(s.ShardSetOf(c.hash), a.NowNS, func() (err error) {
		given, err = c.give(n, takenNS, a, &paid)
		return err
	})
	return given, l.HoldsLeases() && 0 < given && given < n, err
}

// give is Give under the lock. After ErrNoRoom it is called again, once paid has the room.
func (c *call) give(n int64, takenNS uint64, a store.Access, paid *shard.Prepaid) (given int64, err error) {
	c.n, c.e = c.sh.Find(c.hash, c.Key, a)
	c.sh.CountLookup(c.e)
	switch {
	case c.e == nil:
		return 0, nil
	case !c.e.HoldsLimits():
		return 0, store.ErrWrongType
	}
	if c.findEntry(); c.entry == nil {
		return 0, nil
	}
	c.fetch(a.NowNS)
	if now := c.sh.TimeOf(c.Limit, a.NowNS); takenNS == 0 {
		given = c.Limit.Give(&c.st, now, n)
	} else {
		taken := lease.Lease{TakenNS: uint64(c.sh.TimeOf(c.Limit, int64(takenNS))), ExpiryNS: cell.Never, Cost: n}
		c.Limit.GiveBack(&c.st, now, &c.Limit.Shape, []lease.Lease{taken})
		given = n
	}
	lifts := (c.Limit.BlockAtFull || c.st.AtFull) && c.st.BlockedNS != 0
	if lifts {
		c.st.BlockedNS = 0
	}
	if given == 0 && !lifts && !c.carried {
		return 0, nil
	}
	c.sh.Limits.Untell(c.entry)
	if !paid.Claim(shard.Need{Bytes: c.grows()}) {
		return 0, shard.ErrNoRoom
	}
	c.keep(a.NowNS)
	c.settle(given > 0 || lifts, a.NowNS)
	return given, nil
}

// answerGive answers a request that gives back: to each of its limits, and it tells the most that any took back.
func (s *takes) answerGive(r *store.TakeRequest, a store.Access) {
	look := store.TakeRequest{Calls: r.Calls, TakeOptions: store.TakeOptions{Mode: cell.Peek}}
	most := int64(0)
	r.Err = nil
	for i := range r.Calls {
		c := &r.Calls[i]
		if r.Look && c.Rule(s.Set, a.NowNS) != nil {
			continue
		}
		given, err := s.Give(c.Key, c.Limit, c.Policy, -r.Cost, a)
		if most = max(most, given); err != nil {
			r.Err = err
			break
		}
	}
	if r.Look && r.Err == nil {
		s.takeAny(&look, a, caller{})
		r.Err = look.Err
	}
	r.Taken = look.Taken
	r.Taken.Granted = -most
}
