package store

// Get returns the state of a live key and touches it.
func (s *Store) Get(key []byte, a Access) (State, bool) {
	hash := s.hash(key)
	sh := s.shardOf(hash)
	sh.lock(a.NowNS)
	defer sh.mu.Unlock()
	n, e := sh.find(hash, key, a)
	sh.countLookup(e)
	if e == nil {
		return State{}, false
	}
	return sh.state(n, e), true
}

// Action is what Update's function wants done with the key.
type Action int

const (
	Leave  Action = iota // nothing
	Put                  // store the returned state; one that is over already deletes the key
	Delete               // remove the key, if it is there
)

// Update runs fn under the lock with the state of a live key, or with ok false, and does as it says. A key that is there
// is touched, whatever the action. The error is ErrFull, for a Put of a new key.
//
// fn must not call the store. It is called once, or once more when the key came into being while the lock was let go
// to find room for it: then only what it says last is done.
func (s *Store) Update(key []byte, a Access, fn func(old State, ok bool) (State, Action)) error {
	hash := s.hash(key)
	sh := s.shardOf(hash)
	sh.lock(a.NowNS)
	defer sh.mu.Unlock()
	n, e := sh.find(hash, key, a)
	st, action := sh.ask(fn, n, e)
	for {
		if action == Put && st.over(a.NowNS) {
			action = Delete
		}
		spent := st.TAT <= uint64(a.NowNS)
		switch {
		case action == Put && e != nil:
			sh.set(n, e, st, spent, key)
			return nil
		case action == Delete && e != nil:
			sh.remove(n, e)
			return nil
		case action != Put:
			return nil
		}
		again, err := s.claim(sh, costBytes(len(key)), a.NowNS)
		if err != nil {
			return err
		}
		if !again {
			sh.link(hash, key, st, spent, a.NowNS)
			return nil
		}
		if n, e = sh.find(hash, key, a); e != nil {
			st, action = sh.ask(fn, n, e)
		}
	}
}

func (sh *shard) ask(fn func(State, bool) (State, Action), n uint32, e *slot) (State, Action) {
	if e == nil {
		return fn(State{}, false)
	}
	return fn(sh.full(n, e), true)
}

// Delete removes a key and returns whether it was there and live.
func (s *Store) Delete(key []byte, nowNS int64) bool {
	hash := s.hash(key)
	sh := s.shardOf(hash)
	sh.lock(nowNS)
	defer sh.mu.Unlock()
	n, e := sh.find(hash, key, Access{NowNS: nowNS, NoTouch: true})
	if e == nil {
		return false
	}
	sh.remove(n, e)
	return true
}

// IdleNS returns how long ago a live key was last touched (OBJECT IDLETIME), and does not touch it.
func (s *Store) IdleNS(key []byte, nowNS int64) (int64, bool) {
	hash := s.hash(key)
	sh := s.shardOf(hash)
	sh.lock(nowNS)
	defer sh.mu.Unlock()
	_, e := sh.find(hash, key, Access{NowNS: nowNS, NoTouch: true})
	if e == nil {
		return 0, false
	}
	return max(nowNS-sh.touchedNS(e), 0), true
}
