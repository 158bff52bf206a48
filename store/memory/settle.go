package memory

import (
	"bytes"
	"errors"
	"slices"

	"celld/cell"
	"celld/cell/lease"
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
	return s.endLease(key, &settlement{id: id, all: true}, a)
}

// Settle ends a lease whose true cost was n, and reports whether there was one of that ID: a second time it returns false. The key is
// the first of the Take that was granted. Of each limit, what was granted beyond n is given back, and what n is beyond that is taken,
// whether it passes or not; where the store is full it is not. A lease of algo=conc just ends. After an error the lease is as before.
func (s *takes) Settle(key []byte, id, n int64, a store.Access, of ...store.NamedCost) (ended bool, err error) {
	return s.endLease(key, &settlement{id: id, n: min(max(n, store.Kept), cell.MaxCost), of: of}, a)
}

func (s *takes) endLease(key []byte, by *settlement, a store.Access) (ended bool, err error) {
	err = s.onLease(key, by.id, a, func(keys []*call, paid *shard.Prepaid) error { return by.make(keys, a, paid) })
	if errors.Is(err, store.ErrFull) {
		err = s.onLease(key, by.id, a, func(keys []*call, _ *shard.Prepaid) error { return by.make(keys, a, nil) })
	}
	return found(err)
}

// settlement is how a lease ends.
type settlement struct {
	id  int64
	all bool  // all flows back
	n   int64 // the true cost of limits without a name; store.Kept: what they took
	of  []store.NamedCost
}

// costOf is the true cost of what a lease holds of the limits with a name.
func (b *settlement) costOf(name cell.Name, l *lease.Lease) int64 {
	switch at := b.find(name); {
	case b.all:
		return 0
	case at >= 0:
		return b.of[at].N
	case name == cell.Name{} && b.n != store.Kept:
		return b.n
	}
	return l.Cost
}

func (b *settlement) find(name cell.Name) int {
	return slices.IndexFunc(b.of, func(c store.NamedCost) bool { return c.Name == name })
}

// check returns a *store.NoNameError for a name of which the lease holds nothing.
func (b *settlement) check(keys []*call, nowNS int64) error {
	if len(b.of) == 0 {
		return nil
	}
	var held []cell.Name
	for _, c := range keys {
		for p := range c.sh.LimitsOf(c.e) {
			if _, _, found := c.sh.FindLease(p, b.id, nowNS); found {
				held = append(held, c.sh.NameOf(p))
			}
		}
	}
	for _, c := range b.of {
		if !slices.Contains(held, c.Name) {
			return &store.NoNameError{Name: c.Name, Held: slices.DeleteFunc(held, func(n cell.Name) bool { return n == cell.Name{} })}
		}
	}
	return nil
}

var errNoSuchLease = errors.New("no such lease")

// found turns onLease's error into the answer about a lease: was it found?
func found(err error) (bool, error) {
	if err == errNoSuchLease || errors.Is(err, store.ErrFull) {
		return false, nil
	}
	return err == nil, err
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

// debts returns what a lease owes beyond what it holds, and the room that this takes. The error is ErrTooMuch.
func (b *settlement) debts(keys []*call, nowNS int64) (debts []debt, more shard.Need, err error) {
	for _, c := range keys {
		for p := range c.sh.LimitsOf(c.e) {
			_, lease, found := c.sh.FindLease(p, b.id, nowNS)
			if !found || p.Code.Load()&cell.CodeOfLeases == 0 || lease.TakenNS == 0 {
				continue
			}
			of, gone := c.sh.PolicyOf(p)
			l := c.sh.LimitOf(p, of)
			n := b.costOf(l.Name, &lease)
			if gone || lease.Cost >= n {
				continue
			}
			if l.Leases = false; c.sh.BaseOf(c.e, p) != nil {
				l = c.sh.LimitOf(c.sh.BaseOf(c.e, p), of)
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

// make ends the lease under the locks. Without paid nothing more is taken.
func (b *settlement) make(keys []*call, a store.Access, paid *shard.Prepaid) error {
	if err := b.check(keys, a.NowNS); err != nil {
		return err
	}
	if paid != nil {
		debts, more, err := b.debts(keys, a.NowNS)
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
				name := c.sh.NameOf(p)
				c.sh.DropLease(c.e, p, b.id, a.NowNS, func(l *lease.Lease) int64 { return b.costOf(name, l) })
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
