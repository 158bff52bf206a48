package memory

import (
	"bytes"
	"errors"
	"slices"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/memory/table"
)

// Renew lets a lease end so many ns from now, and reports whether there is one of that ID. The key is the first of the Take that was
// granted. What the Take has under other keys is renewed with it. The error is a *NoRightError.
func (s *takes) Renew(key []byte, id, ns int64, a store.Access) (renewed bool, err error) {
	end := shard.LaterNS(a.NowNS, max(ns, 0))
	return found(s.onLease(key, id, a, func(keys []*call, _ *shard.Prepaid) error {
		for _, c := range keys {
			for p := range c.sh.LimitsOf(c.e) {
				if st, _, found := c.sh.FindLease(p, id, a.NowNS); found {
					st.Leases().Renew(uint64(id), end) // in its ring
				}
			}
			c.leasesChanged(a.NowNS)
		}
		return nil
	}))
}

// Release ends a lease and gives all of it back: see Settle.
func (s *takes) Release(key []byte, id int64, a store.Access) (ended bool, err error) {
	return s.Settle(key, id, 0, a)
}

// Settle ends a lease whose true cost was n, and reports whether there was one of that ID: a second time it returns false. The key is
// the first of the Take that was granted. Of each limit, what was granted beyond n is given back, and what n is beyond that is taken,
// whether it passes or not; where the store is full it is not. A lease of algo=conc just ends. The errors are a *NoRightError and
// ErrTooMuch; after these the lease is as before.
func (s *takes) Settle(key []byte, id, n int64, a store.Access) (ended bool, err error) {
	n = min(max(n, 0), cell.MaxCost)
	err = s.onLease(key, id, a, func(keys []*call, paid *shard.Prepaid) error { return s.settle(keys, id, n, a, paid) })
	if errors.Is(err, store.ErrFull) {
		err = s.onLease(key, id, a, func(keys []*call, _ *shard.Prepaid) error { return s.settle(keys, id, n, a, nil) })
	}
	return found(err)
}

var errNoSuchLease = errors.New("no such lease")

// found turns onLease's error into the answer about a lease: was it found?
func found(err error) (bool, error) {
	if refused := (*store.NoRightError)(nil); errors.As(err, &refused) || err == store.ErrTooMuch {
		return false, err
	}
	return err == nil, nil
}

// onLease calls do, under the locks of all keys of a lease, with those that are there and hold limits. After ErrNoRoom, do is called again.
func (s *takes) onLease(key []byte, id int64, a store.Access, do func(keys []*call, paid *shard.Prepaid) error) error {
	if id <= 0 {
		return errNoSuchLease
	}
	lead := s.byName(key)
	paid := shard.Prepaid{Store: s.Shards, Shard: lead.sh}
	for locks := s.ShardSetOf(lead.hash); ; { // nearly all leases lead nowhere, so one lock is nearly always enough
		var lacks shard.ShardSet
		err := paid.Run(locks, a.NowNS, func() (err error) {
			var keys []*call
			if keys, lacks, err = s.keysOf(lead, id, locks, a); err != nil || lacks != 0 {
				return err
			}
			return do(keys, &paid)
		})
		if lacks == 0 {
			return err
		}
		locks |= lacks
	}
}

// byName is a call of a key and no limit.
func (s *takes) byName(key []byte) *call {
	c := &call{Call: &store.Call{Key: key}}
	c.hash = s.Hash(key)
	c.sh = s.ShardOf(c.hash)
	return c
}

// keysOf returns a lease's first key, which is locked, and those keys to which it leads that have it, too. lacks are the locks that are
// missing to look at these.
func (s *takes) keysOf(lead *call, id int64, locks shard.ShardSet, a store.Access) (keys []*call, lacks shard.ShardSet, err error) {
	linked, found := lead.linked(id, a)
	if !found {
		return nil, 0, errNoSuchLease
	}
	if err := a.May.Reach(linked, true, true); err != nil {
		return nil, 0, err
	}
	keys = append(keys, lead)
	slices.SortFunc(linked, bytes.Compare)
	for _, name := range slices.CompactFunc(linked, bytes.Equal) {
		if bytes.Equal(name, lead.Key) { // it was renamed
			continue
		}
		c := s.byName(name)
		if set := s.ShardSetOf(c.hash); locks&set == 0 {
			lacks |= set
		} else if _, found := c.linked(id, a); found {
			keys = append(keys, c)
		}
	}
	return keys, lacks, nil
}

// linked looks up a key, under its lock, and returns the keys that a lease under it leads to. found is false if there is no such lease.
func (c *call) linked(id int64, a store.Access) (names [][]byte, found bool) {
	if c.n, c.e = c.sh.Find(c.hash, c.Key, a); c.e == nil {
		return nil, false
	}
	return c.sh.LinkedOf(c.e, id, a.NowNS)
}

// Linked are the other keys that a lease under a key leads to: those of the Take that was granted. They may be there no longer. The
// error is a *NoRightError.
func (s *takes) Linked(key []byte, id int64, a store.Access) (names [][]byte, err error) {
	c := s.byName(key)
	c.sh.Lock(a.NowNS)
	defer c.sh.Unlock()
	names, _ = c.linked(id, a)
	return names, a.May.Reach(names, true, true)
}

// debt is a call that takes from a limit what it owes beyond a lease.
type debt struct {
	call
	cost int64
}

// debtsOf returns what a lease whose true cost was n owes, and the room that this takes. The error is ErrTooMuch.
func debtsOf(keys []*call, id, n int64, nowNS int64) (debts []debt, more shard.Need, err error) {
	for i := 0; i < len(keys) && n > 0; i++ {
		c := keys[i]
		for p := range c.sh.LimitsOf(c.e) {
			_, lease, found := c.sh.FindLease(p, id, nowNS)
			if !found || p.Code.Load()&cell.CodeOfLeases == 0 || lease.Cost >= n || lease.TakenNS == 0 {
				continue
			}
			l := p.Limit()
			l.Leases = false
			if base := c.sh.BaseOf(c.e, p); base != nil {
				l = base.Limit()
			}
			of, gone := c.sh.PolicyOf(p)
			if gone {
				continue
			}
			d := debt{*c, n - lease.Cost}
			d.Call, d.code, d.changes = &store.Call{Key: c.Key, Limit: &l, Policy: of}, l.Code(), true
			d.findEntry()
			if d.fetch(nowNS); !d.holds(d.cost, nowNS) && (of == nil || !of.Limit.Shadow) {
				return nil, shard.Need{}, store.ErrTooMuch
			}
			more.Add(d.needs(nil, d.cost, nowNS))
			debts = append(debts, d)
		}
	}
	return debts, more, nil
}

// settle is Settle under the locks. Without paid nothing more is taken.
func (s *takes) settle(keys []*call, id, n int64, a store.Access, paid *shard.Prepaid) error {
	if paid != nil {
		debts, more, err := debtsOf(keys, id, n, a.NowNS)
		if err != nil {
			return err
		}
		if !paid.Claim(more) {
			return shard.ErrNoRoom
		}
		for i := range debts {
			debts[i].change(nil, debts[i].cost, cell.Force, a.NowNS)
		}
	}
	for _, c := range keys {
		for t := c.e.FirstLimit(); t != 0; {
			p := c.sh.Limits.At(t)
			t = p.Next.Load()
			if p.HoldsLeases() {
				c.sh.DropLease(c.e, p, id, n, a.NowNS)
				c.sh.DropIfEmpty(c.e, p)
			}
		}
		c.leasesChanged(a.NowNS)
	}
	return nil
}

// leasesChanged notes that leases of a key have changed, or its limits with them, and pokes the lines of the key. It removes a key that has
// nothing left to remember.
func (c *call) leasesChanged(nowNS int64) {
	sh := c.sh
	if end := sh.LimitsEndNS(c.e); end > uint64(nowNS) {
		sh.MoveEnd(c.n, c.e, end, c.Key)
		if c.e.Has(table.FlagWaited) {
			sh.PokeKey(c.Key, sh.LatestNS)
		}
	} else {
		sh.Remove(c.n, c.e)
	}
}
