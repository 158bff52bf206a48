package store

import (
	"errors"
	"math/bits"

	"celld/cell"
)

// Errors of Take, beside ErrFull and ErrWrongType. Nothing has changed.
var (
	ErrTooManyLimits = errors.New("too many limits under one key")
	ErrTwoLimits     = errors.New("two limits that share their state")
)

// TakeOptions say what the calls of a Take do.
type TakeOptions struct {
	Cost int64     // 0..cell.MaxCost
	Mode cell.Mode // cell.Take, Peek or Force
	UpTo bool      // take what all allow, 1 at least and Cost at most
}

// Taken is the answer of all calls of a Take.
type Taken struct {
	Limited      bool
	Granted      int64
	Binding      int    // the call with the longest wait, or else with the least share left
	RetryAfterNS uint64 // the longest, or cell.Never
	ResetAfterNS uint64 // the longest
}

// Take decides on all calls at one instant: all are granted, or none. A call that is denied changes nothing but a block.
// Calls that share a key and its state add up; what they hold of an earlier Take is not looked at. The locks of all keys are
// held, taken in one order whatever that of the keys.
func (s *Store) Take(calls []Call, o TakeOptions, a Access) (Taken, error) {
	if len(calls) == 1 && o.Mode == cell.Take && !o.UpTo {
		if taken, done, err := s.takeOne(&calls[0], o.Cost, a); done {
			return taken, err
		}
	}
	var shards [maxShards / 64]uint64
	for i := range calls {
		c := &calls[i]
		c.work = work{hash: s.hash(c.Key), shape: shapeOf(&c.Limit.Slot)}
		index := s.shardIndex(c.hash)
		c.sh = &s.shards[index]
		shards[index/64] |= 1 << (index % 64)
	}
	var paid prepaid
	for {
		s.lockAll(&shards, calls, a.NowNS)
		taken, short, err := s.takeLocked(calls, o, a, &paid)
		s.unlockAll(&shards, calls)
		if short == nil {
			paid.release(&s.room)
			if s.room.over() {
				s.trim(a.NowNS)
			}
			return taken, err
		}
		if err := s.pay(short, a.NowNS, &paid); err != nil {
			paid.release(&s.room)
			return Taken{}, err
		}
	}
}

// takeOne is Take for one limit under a key that is there and holds it already, as nearly all calls are.
func (s *Store) takeOne(c *Call, cost int64, a Access) (t Taken, done bool, err error) {
	if s.rules.any.Load() {
		return t, false, nil
	}
	c.hash, c.shape = s.hash(c.Key), shapeOf(&c.Limit.Slot)
	sh := s.shardOf(c.hash)
	c.sh = sh
	sh.lock(a.NowNS)
	c.n, c.e = sh.find(c.hash, c.Key, a)
	if c.e == nil || !c.e.holdsLimits() || c.e.use&flagsOfState != 0 {
		sh.mu.Unlock()
		return t, false, nil
	}
	p := sh.tallies.at(c.e.firstTally())
	if p.next != 0 || !p.is(c.Limit, c.Policy, c.shape) || !p.same(c.Limit, c.shape) {
		sh.mu.Unlock()
		return t, false, nil
	}
	c.st = sh.tallies.state(p)
	if c.Limit.Algo == cell.Log || c.Limit.Buckets > 0 { // it has a ring, which is changed in place
		if c.Limit.Fit(&c.st, a.NowNS) > 0 {
			sh.mu.Unlock()
			return t, false, nil
		}
		sh.remember(c.n, c.e, c.Key)
	}
	sh.counters.hits++
	c.Decision = c.Limit.Decide(&c.st, a.NowNS, cost, cell.Take)
	d := &c.Decision
	if !d.Limited && cost > 0 || p.blockedNS != c.st.BlockedNS {
		sh.remember(c.n, c.e, c.Key)
		p.a, p.b, p.blockedNS = c.st.A, c.st.B, c.st.BlockedNS
		sh.putEnd(c.n, c.e, c.Limit.EndNS(&c.st), c.Key)
	}
	sh.mu.Unlock()
	t = Taken{RetryAfterNS: cell.Never, ResetAfterNS: d.ResetAfterNS, Granted: cost}
	if d.Limited && !c.Limit.Shadow {
		t.Limited, t.Granted, t.RetryAfterNS = true, 0, d.RetryAfterNS
	}
	return t, true, nil
}

func (s *Store) lockAll(shards *[maxShards / 64]uint64, calls []Call, nowNS int64) {
	if len(calls) == 1 {
		calls[0].sh.lock(nowNS)
		return
	}
	for i, word := range shards {
		for ; word != 0; word &= word - 1 {
			s.shards[i*64+bits.TrailingZeros64(word)].lock(nowNS)
		}
	}
}

func (s *Store) unlockAll(shards *[maxShards / 64]uint64, calls []Call) {
	if len(calls) == 1 {
		calls[0].sh.mu.Unlock()
		return
	}
	for i, word := range shards {
		for ; word != 0; word &= word - 1 {
			s.shards[i*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}

// prepaid is room that was claimed for keys before the locks were taken, as it could not be had under them.
type prepaid struct{ costs []int64 }

func (p *prepaid) use(cost int64) bool {
	for i, c := range p.costs {
		if c == cost {
			p.costs[i] = p.costs[len(p.costs)-1]
			p.costs = p.costs[:len(p.costs)-1]
			return true
		}
	}
	return false
}

func (p *prepaid) release(r *room) {
	for _, cost := range p.costs {
		r.release(cost)
	}
	p.costs = nil
}

// pay claims the room of one key, for which others may have to go.
func (s *Store) pay(c *Call, nowNS int64, paid *prepaid) error {
	cost := costBytes(len(c.Key))
	c.sh.lock(nowNS)
	defer c.sh.mu.Unlock()
	for {
		again, err := s.claim(c.sh, cost, nowNS)
		if err != nil {
			return err
		}
		if !again {
			paid.costs = append(paid.costs, cost)
			return nil
		}
	}
}

// takeLocked is Take under the locks. short is a call whose key needs room that is not there; then nothing has changed.
func (s *Store) takeLocked(calls []Call, o TakeOptions, a Access, paid *prepaid) (t Taken, short *Call, err error) {
	ruled := s.rules.any.Load()
	for i := range calls {
		if ruled && s.applyRule(&calls[i], a.NowNS) {
			t.Limited = t.Limited || calls[i].Decision.Limited
			continue
		}
		if err := s.load(calls, i, a); err != nil {
			return Taken{}, nil, err
		}
	}
	cost := o.Cost
	if o.UpTo {
		for i := range calls {
			if c := &calls[i]; !c.Limit.Shadow && !c.ruled {
				d := c.Limit.Decide(&c.st, a.NowNS, 1, cell.Peek)
				cost = min(cost, d.Remaining/c.timesOfAll(calls))
			}
		}
		cost = max(cost, 1)
	}
	tried := o.Mode == cell.Take && !o.UpTo && len(calls) > 1 && !t.Limited && try(calls, cost, a.NowNS)
	if !tried && o.Mode != cell.Force && (o.Mode == cell.Peek || len(calls) > 1) || o.UpTo || t.Limited {
		for i := range calls {
			c := &calls[i]
			if c.ruled {
				continue
			}
			c.Decision = c.Limit.Decide(&c.st, a.NowNS, min(cost*c.times, cell.MaxCost), cell.Peek)
			t.Limited = t.Limited || c.Decision.Limited && !c.Limit.Shadow
		}
		if o.Mode == cell.Peek {
			t.sum(calls)
			return t, nil, nil
		}
	}
	denied := t.Limited
	for i := range calls { // room first, so that nothing is half done
		c := &calls[i]
		if c.skip = c.ruled || denied && (!c.Decision.Limited || c.Limit.BlockNS == 0); c.skip || c.e != nil || c.claimedBy(calls[:i]) {
			continue
		}
		need := costBytes(len(c.Key))
		if c.claimed = paid.use(need) || s.room.claim(need); !c.claimed {
			for j := range calls[:i] {
				if calls[j].claimed {
					paid.costs = append(paid.costs, costBytes(len(calls[j].Key)))
				}
			}
			return Taken{}, c, nil
		}
	}
	for i := range calls {
		if c := &calls[i]; c.skip {
			continue
		} else if denied {
			s.change(calls, i, min(cost*c.times, cell.MaxCost), o.Mode, a)
		} else {
			s.change(calls, i, cost, o.Mode, a)
			t.Limited = t.Limited || c.Decision.Limited && !c.Limit.Shadow
		}
	}
	settle(calls)
	for i := range calls { // of keys that came to nothing, as when a single call was denied
		if c := &calls[i]; c.claimed && c.e == nil && !c.madeBy(calls[i:]) {
			s.room.release(costBytes(len(c.Key)))
		}
	}
	if t.sum(calls); !t.Limited {
		t.Granted = cost
	}
	return t, nil, nil
}

// try takes all calls in their copies of the states, where that can be done and all pass; else nothing has changed. It spares
// looking first: four limits that pass cost 1.42 µs without it and settle, 1.05 with them, and four of which one does not
// pass about as much as before (redis-benchmark, P=16).
func try(calls []Call, cost, nowNS int64) bool {
	for i := range calls {
		c := &calls[i]
		if c.ruled {
			continue
		}
		passes := c.times == 1 && c.Limit.BlockNS == 0 && c.Limit.Algo != cell.Log && c.Limit.Buckets == 0 // no ring, which would not be a copy
		if passes {
			c.was, c.tried = c.st, true
			c.Decision = c.Limit.Decide(&c.st, nowNS, cost, cell.Take)
			passes = !c.Decision.Limited || c.Limit.Shadow
		}
		if !passes {
			for j := range calls[:i+1] {
				if b := &calls[j]; b.tried {
					b.st, b.tried = b.was, false
				}
			}
			return false
		}
	}
	return true
}

// settle has each key that has changed end with the last of its limits.
func settle(calls []Call) {
	for i := range calls {
		if c := &calls[i]; c.kept && !c.keptBy(calls[i+1:]) {
			c.putEnd()
		}
	}
}

// applyRule decides on a call by a rule, if one holds for its key. Nothing of it is stored.
func (s *Store) applyRule(c *Call, nowNS int64) bool {
	r := s.rules.rule(c.Key, nowNS)
	if c.ruled = r != nil; c.ruled {
		c.Decision = r.decision(c.Limit.Capacity(), nowNS)
	}
	return c.ruled
}

// load looks up the key and the state of a call.
func (s *Store) load(calls []Call, i int, a Access) error {
	c := &calls[i]
	c.times, c.claimed, c.tried, c.kept = 1, false, false, false
	first := true
	for j := range calls[:i] {
		before := &calls[j]
		if !before.sameKey(c) {
			continue
		}
		first = false
		c.n, c.e = before.n, before.e
		if before.sharesState(c) {
			if before.Limit.Slot != c.Limit.Slot || before.Limit.Params != c.Limit.Params {
				return ErrTwoLimits
			}
			c.times++
		}
	}
	if first {
		c.n, c.e = c.sh.find(c.hash, c.Key, a)
		c.sh.countLookup(c.e)
	}
	if c.e != nil && !c.e.holdsLimits() {
		return ErrWrongType
	}
	limits := c.findTally()
	if c.tally == nil && limits+len(calls) > MaxLimits {
		left, freed := c.sh.dropDeadTallies(c.e, a.NowNS)
		s.room.bytes.Add(-freed)
		for j := range calls[:i] { // one of them may have found what is gone
			if before := &calls[j]; !before.ruled && before.sameKey(c) {
				before.findTally()
				before.fetch(a.NowNS)
			}
		}
		if left+len(calls) > MaxLimits {
			return ErrTooManyLimits
		}
	}
	c.fetch(a.NowNS)
	return nil
}

// change decides on a call and stores what it leaves.
func (s *Store) change(calls []Call, i int, cost int64, mode cell.Mode, a Access) {
	c := &calls[i]
	if c.e == nil || c.times > 1 {
		c.again(calls[:i], a.NowNS)
	}
	sh := c.sh
	if c.e != nil {
		sh.remember(c.n, c.e, c.Key)
	}
	if c.tried {
		if !c.Decision.Limited && cost > 0 {
			s.keep(c, a.NowNS)
		}
		return
	}
	was := c.st.BlockedNS
	before := bytesOfRing(c.st.Ring)
	if c.Limit.Algo == cell.Log || c.Limit.Buckets > 0 {
		c.Limit.Fit(&c.st, a.NowNS)
	}
	c.Decision = c.Limit.Decide(&c.st, a.NowNS, cost, mode)
	if c.Decision.Limited && c.st.BlockedNS == was || cost == 0 {
		if grown := bytesOfRing(c.st.Ring) - before; grown != 0 && c.tally != nil && c.tally.same(c.Limit, c.shape) {
			sh.tallies.keep(c.tally, c.Limit, c.shape, &c.st)
			s.room.bytes.Add(grown)
		}
		return
	}
	s.keep(c, a.NowNS)
}

// keep stores a call's state, but for when its key ends: see putEnd. The room of a key that is new has been claimed.
func (s *Store) keep(c *Call, nowNS int64) {
	sh := c.sh
	c.kept = true
	var had int64
	if c.e == nil {
		c.n, c.e = sh.link(c.hash, c.Key, State{TAT: c.Limit.EndNS(&c.st)}, false, nowNS)
	} else if c.tally != nil {
		had = sh.tallies.bytes(c.tally)
	}
	if c.tally == nil {
		c.tally = sh.addTally(c.e, c.Policy)
	}
	sh.tallies.keep(c.tally, c.Limit, c.shape, &c.st)
	if now := sh.tallies.bytes(c.tally); now != had {
		s.room.bytes.Add(now - had)
	}
}

// sum is what all calls together say. Limited is set.
func (t *Taken) sum(calls []Call) {
	t.RetryAfterNS = cell.Never
	binding := -1
	for i := range calls {
		d := &calls[i].Decision
		t.ResetAfterNS = max(t.ResetAfterNS, d.ResetAfterNS)
		if calls[i].Limit.Shadow && len(calls) > 1 {
			continue
		}
		if binding < 0 || t.Limited && waits(d, &calls[binding].Decision) || !t.Limited && lessLeft(d, &calls[binding].Decision) {
			binding = i
		}
	}
	if t.Binding = max(binding, 0); t.Limited {
		t.RetryAfterNS = calls[t.Binding].Decision.RetryAfterNS
	}
}

// waits reports whether d is limited, and for longer.
func waits(d, than *cell.Decision) bool {
	return d.Limited && (!than.Limited || d.RetryAfterNS > than.RetryAfterNS)
}

// lessLeft reports whether d has a smaller share left.
func lessLeft(d, than *cell.Decision) bool {
	high, low := bits.Mul64(uint64(d.Remaining), uint64(than.Limit))
	high2, low2 := bits.Mul64(uint64(than.Remaining), uint64(d.Limit))
	return high < high2 || high == high2 && low < low2
}

// Give gives back up to n of what was taken from a limit, and returns how much that was. The error is ErrWrongType.
func (s *Store) Give(key []byte, l *cell.Literal, policy uint32, n int64, a Access) (int64, error) {
	calls := [1]Call{{Key: key, Limit: l, Policy: policy}}
	c := &calls[0]
	c.hash, c.shape = s.hash(key), shapeOf(&l.Slot)
	c.sh = s.shardOf(c.hash)
	c.sh.lock(a.NowNS)
	defer c.sh.mu.Unlock()
	if err := s.load(calls[:], 0, a); err != nil || c.tally == nil {
		return 0, err
	}
	c.sh.remember(c.n, c.e, key)
	given := l.Give(&c.st, a.NowNS, n)
	if given == 0 {
		return 0, nil
	}
	s.keep(c, a.NowNS)
	c.putEnd()
	if c.sh.limitsEndNS(c.e) <= uint64(a.NowNS) {
		c.sh.remove(c.n, c.e)
	}
	return given, nil
}
