package store

// Copy gives one key the state of another in one step for every other call: its TAT or its limits, and when it expires. It
// returns whether it did. It does not where there is no such key, nor over one that is there, unless replace is set. Both
// keys are touched where they are there. The two names must differ.
//
// The error is ErrFull, and then nothing has changed.
func (s *Store) Copy(from, to []byte, replace bool, a Access) (bool, error) {
	c := copying{from: from, to: to, fromHash: s.hash(from), toHash: s.hash(to), replace: replace}
	var locks shardSet
	c.source, c.target, locks = s.pair(c.fromHash, c.toHash)
	var paid prepaid
	for {
		s.lockAll(&locks, a.NowNS)
		copied, err := c.run(s, a, &paid)
		paid.release(s)
		s.unlockAll(&locks)
		if err != errNoRoom {
			return copied, err
		}
		if err := s.pay(c.target, &paid, a.NowNS); err != nil {
			return false, err
		}
	}
}

// copying is one Copy.
type copying struct {
	from, to         []byte
	fromHash, toHash uint64
	source, target   *shard
	replace          bool
}

// run is Copy under the locks. With errNoRoom it has to be called once more, when paid has what it asks for.
func (c *copying) run(s *Store, a Access, paid *prepaid) (copied bool, err error) {
	n, e := c.source.find(c.fromHash, c.from, a)
	if e == nil {
		return false, nil
	}
	o, old := c.target.find(c.toHash, c.to, a)
	if old != nil && !c.replace {
		return false, nil
	}
	st, spent := c.source.full(n, e), e.spent()
	if st.Limits != nil {
		limits := st.Limits.clone()
		st.Limits = &limits
	}
	if !paid.claim(s, c.target.more(old, c.to, st)) {
		return false, errNoRoom
	}
	if old != nil {
		c.target.set(o, old, st, spent, c.to)
	} else {
		c.target.link(c.toHash, c.to, st, spent, a.NowNS)
	}
	return true, nil
}
