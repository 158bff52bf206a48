package store

import (
	"errors"
	"slices"

	"celld/cell"
)

// Renew has a lease end so many ns from now, and reports whether there is one of that ID. The key is the first of the Take that was
// granted. What the Take has under other keys is renewed with it. The error is a *NoRightError.
func (s *Store) Renew(key []byte, id, ns int64, a Access) (renewed bool, err error) {
	end := laterNS(a.NowNS, max(ns, 0))
	return found(s.onLease(key, id, a, func(keys []*Call, _ *prepaid) error {
		for _, c := range keys {
			for p := range c.sh.talliesOf(c.e) {
				if st, _, found := c.sh.findLease(p, id, a.NowNS); found {
					cell.RenewLease(&st, uint64(id), end)
					p.setState(&st)
				}
			}
			c.sh.leasesChanged(c, a.NowNS)
		}
		return nil
	}))
}

// Release ends a lease and gives all of it back: see Settle.
func (s *Store) Release(key []byte, id int64, a Access) (ended bool, err error) {
	return s.Settle(key, id, 0, a)
}

// Settle ends a lease whose true cost was n, and reports whether there was one of that ID: a second time it returns false. The key is
// the first of the Take that was granted. Of each limit, what was granted beyond n is given back, and what n is beyond that is taken,
// whether it passes or not; where the store is full it is not. A lease of algo=conc just ends. The error is a *NoRightError.
func (s *Store) Settle(key []byte, id, n int64, a Access) (ended bool, err error) {
	n = min(max(n, 0), cell.MaxCost)
	err = s.onLease(key, id, a, func(keys []*Call, paid *prepaid) error { return s.settle(keys, id, n, a, paid) })
	if errors.Is(err, ErrFull) {
		err = s.onLease(key, id, a, func(keys []*Call, _ *prepaid) error { return s.settle(keys, id, n, a, nil) })
	}
	return found(err)
}

var errNoSuchLease = errors.New("no such lease")

// found is onLease's error as those tell it who have asked for the lease.
func found(err error) (bool, error) {
	if refused := (*NoRightError)(nil); errors.As(err, &refused) {
		return false, refused
	}
	return err == nil, nil
}

// onLease calls do, under the locks of all keys of a lease, with those that are there and hold limits. With errNoRoom, do is called again.
func (s *Store) onLease(key []byte, id int64, a Access, do func(keys []*Call, paid *prepaid) error) error {
	if id <= 0 {
		return errNoSuchLease
	}
	linked, err := s.Linked(key, id, a)
	if err != nil {
		return err
	}
	names, locks := append([][]byte{key}, linked...), s.shardSetOf(s.hash(key))
	seen := make(map[string]bool, len(names)) // a key that was renamed may have another's name
	names = slices.DeleteFunc(names, func(name []byte) bool {
		again := seen[string(name)]
		seen[string(name)] = true
		return again
	})
	for _, name := range names {
		locks |= s.shardSetOf(s.hash(name))
	}
	paid := prepaid{store: s, shard: s.shardOf(s.hash(key))}
	return paid.run(locks, a.NowNS, func() error {
		var keys []*Call
		for i, name := range names {
			c := &Call{Key: name}
			c.hash = s.hash(name)
			c.sh = s.shardOf(c.hash)
			if c.n, c.e = c.sh.find(c.hash, name, a); c.e != nil && c.sh.hasLease(c.e, id, a.NowNS) {
				keys = append(keys, c)
			} else if i == 0 {
				return errNoSuchLease
			}
		}
		return do(keys, &paid)
	})
}

// Linked are the other keys that a lease under a key leads to: those of the Take that was granted. They may be there no longer. The
// error is a *NoRightError.
func (s *Store) Linked(key []byte, id int64, a Access) (names [][]byte, err error) {
	sh, _, e := s.lockKey(key, a)
	defer sh.unlock()
	if e != nil {
		names = sh.linkedOf(e, id, a.NowNS)
	}
	return names, a.May.reach(names, true, true)
}

// linkedOf are the keys that a lease under a key leads to.
func (sh *shard) linkedOf(e *slot, id, nowNS int64) (names [][]byte) {
	for p := range sh.talliesOf(e) {
		if st, _, found := sh.findLease(p, id, nowNS); found {
			names = append(names, linkedKeys(&st, uint64(id))...)
		}
	}
	return names
}

// findLease looks for a lease that has not ended in a tally.
func (sh *shard) findLease(p *tally, id, nowNS int64) (st cell.State, l cell.Lease, found bool) {
	if p.holdsLeases() {
		st = sh.tallies.state(p)
		l, found = cell.FindLease(&st, uint64(id), nowNS)
	}
	return st, l, found
}

func (sh *shard) hasLease(e *slot, id, nowNS int64) bool {
	for p := range sh.talliesOf(e) {
		if _, _, found := sh.findLease(p, id, nowNS); found {
			return true
		}
	}
	return false
}

// debt is what a limit is to take beyond a lease.
type debt struct {
	call *Call
	base *tally // nil: the limit has nothing left to remember
	of   *tally // the companion
	l    cell.Limit
	st   cell.State
	cost int64
}

// settle is Settle under the locks. Without paid nothing more is taken.
func (s *Store) settle(keys []*Call, id, n int64, a Access, paid *prepaid) error {
	var debts []debt
	var more need
	for _, c := range keys {
		for p := range c.sh.talliesOf(c.e) {
			_, l, found := c.sh.findLease(p, id, a.NowNS)
			if !found || p.code.Load()&leasesCode == 0 || l.Cost >= n || l.TakenNS == 0 {
				continue
			}
			d := debt{call: c, of: p, base: c.sh.baseOf(c.e, p), l: p.limit(), cost: n - l.Cost}
			d.l.Leases = false
			if d.base != nil {
				d.l, d.st = d.base.limit(), c.sh.tallies.state(d.base)
				more.bytes -= c.sh.tallies.bytes(d.base)
			}
			d.l.Fit(&d.st, c.sh.timeOf(&d.l, a.NowNS))
			more.bytes += TallyBytes + bytesOfRing(d.st.Ring)
			debts = append(debts, d)
		}
	}
	if paid != nil && !paid.claim(more) {
		return errNoRoom
	}
	for i := range debts {
		if paid != nil {
			debts[i].take(a.NowNS)
		}
	}
	for _, c := range keys {
		for t := c.e.firstTally(); t != 0; {
			p := c.sh.tallies.at(t)
			t = p.next.Load()
			for {
				st, l, found := c.sh.findLease(p, id, a.NowNS)
				if !found {
					break
				}
				cell.DropLease(&st, uint64(id))
				p.setState(&st)
				if back := l.Cost - n; back > 0 && p.code.Load()&leasesCode != 0 {
					l.Cost = back
					c.sh.giveBack(c.e, p, []cell.Lease{l}, a.NowNS)
				}
			}
			if p.holdsLeases() {
				c.sh.dropIfEmpty(c.e, p)
			}
		}
		c.sh.leasesChanged(c, a.NowNS)
	}
	return nil
}

func (d *debt) take(nowNS int64) {
	sh := d.call.sh
	if d.base == nil {
		d.base = sh.addTally(d.call.e, d.of.policy.Load())
	}
	d.l.Decide(&d.st, sh.timeOf(&d.l, nowNS), d.cost, cell.Force)
	had := sh.tallies.bytes(d.base)
	sh.tallies.keep(d.base, &d.l, codeOf(&d.l.Shape), &d.st)
	sh.releaseBytes(had - sh.tallies.bytes(d.base))
}

// leasesChanged notes that leases of a key have changed, or its limits with them: those who wait for it are looked at again. It removes
// a key that has nothing left to remember.
func (sh *shard) leasesChanged(c *Call, nowNS int64) {
	if end := sh.limitsEndNS(c.e); end > uint64(nowNS) {
		sh.moveEnd(c.n, c.e, end, c.Key)
		if c.e.has(flagWaited) {
			sh.pokeKey(c.Key, sh.latestNS)
		}
	} else {
		sh.remove(c.n, c.e)
	}
}
