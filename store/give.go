package store

import "celld/cell"

// Give gives back up to n of what was taken from a limit, and returns how much that was. The errors are ErrWrongType and
// ErrFull, to which only a policy whose algorithm has changed can lead.
func (s *Store) Give(key []byte, l *cell.Limit, policy uint32, n int64, a Access) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	c := Call{Key: key, Limit: l, Policy: policy}
	c.hash, c.code = s.hash(key), codeOf(&l.Shape)
	c.sh = s.shardOf(c.hash)
	var paid prepaid
	for {
		c.sh.lock(a.NowNS)
		given, err := s.giveLocked(&c, n, a, &paid)
		paid.release(s)
		c.sh.mu.Unlock()
		if err != errNoRoom {
			return given, err
		}
		if err := s.pay(c.sh, &paid, a.NowNS); err != nil {
			return 0, err
		}
	}
}

func (s *Store) giveLocked(c *Call, n int64, a Access, paid *prepaid) (given int64, err error) {
	c.n, c.e = c.sh.find(c.hash, c.Key, a)
	c.sh.countLookup(c.e)
	switch {
	case c.e == nil:
		return 0, nil
	case !c.e.holdsLimits():
		return 0, ErrWrongType
	}
	if c.findTally(); c.tally == nil {
		return 0, nil
	}
	c.fetch(a.NowNS)
	c.sh.journal.mark(c.n, c.e)
	if given = c.Limit.Give(&c.st, c.sh.timeOf(c.Limit, a.NowNS), n); given == 0 && !c.carried {
		return 0, nil
	}
	c.sh.tallies.untell(c.tally)
	if !paid.claim(s, need{bytes: c.grows()}) {
		return 0, errNoRoom
	}
	c.keep(a.NowNS)
	c.settle(given > 0, a.NowNS)
	return given, nil
}
