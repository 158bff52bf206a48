package shard

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// Get returns the state of a live key and touches it.
func (s *Shards) Get(key []byte, a store.Access) (store.Value, bool) {
	sh, n, e := s.lockKey(key, a)
	defer sh.Unlock()
	sh.CountLookup(e)
	if e == nil {
		return store.Value{}, false
	}
	return inWall(sh.State(n, e), s.Wall.Load()), true
}

// Update runs fn under the lock with the state of a live key, or with ok false. If put, it stores what fn returns, and one that is over
// already, as the zero Value is, removes the key. It touches a key that is there in any case. The error is ErrFull, for a new key, or for
// more limits than the key holds.
//
// fn must not call the store. It is called once, or once more if the key came or went while the lock was released to find room: then only
// its last answer counts.
func (s *Shards) Update(key []byte, a store.Access, fn func(old store.Value, ok bool) (st store.Value, put bool)) error {
	return s.Replace(key, a, func(is store.Value, ok bool) (st store.Value, put bool) {
		ahead := s.Wall.Load()
		told := inWall(is, ahead)
		st, put = fn(told, ok)
		if ok && st.Limits == told.Limits { // as they are
			st.TAT, st.Limits = cell.ShiftInstant(st.TAT, -ahead), is.Limits
			return st, put
		}
		return fromWall(st, ahead), put
	})
}

// Delete removes a key and returns whether it was there and live.
func (s *Shards) Delete(key []byte, nowNS int64) bool {
	sh, n, e := s.lockKey(key, store.Access{NowNS: nowNS, NoTouch: true})
	defer sh.Unlock()
	if e == nil {
		return false
	}
	sh.Remove(n, e)
	return true
}

// IdleNS returns how long ago a live key was last touched (OBJECT IDLETIME), and does not touch it.
func (s *Shards) IdleNS(key []byte, nowNS int64) (int64, bool) {
	return s.inspect(key, nowNS, func(sh *Shard, _ uint32, e *table.Slot) int64 { return max(nowNS-sh.TouchedNS(e), 0) })
}

// KeyBytes returns how many bytes a live key takes with its limits (MEMORY USAGE), by the estimate of MaxBytes, and does not touch it.
// Those of all keys add up to Stats.Bytes.
func (s *Shards) KeyBytes(key []byte, nowNS int64) (int64, bool) {
	return s.inspect(key, nowNS, (*Shard).CostBytes)
}

func (s *Shards) inspect(key []byte, nowNS int64, figure func(*Shard, uint32, *table.Slot) int64) (int64, bool) {
	sh, n, e := s.lockKey(key, store.Access{NowNS: nowNS, NoTouch: true})
	defer sh.Unlock()
	if e == nil {
		return 0, false
	}
	return figure(sh, n, e), true
}

// Limits calls fn for each limit of a live key that holds limits, and touches it. The state is valid until fn returns,
// which must not use the store. It returns false where there is no such key; the error is ErrWrongType.
func (s *Shards) Limits(key []byte, a store.Access, fn func(*store.LimitState)) (bool, error) {
	sh, _, e := s.lockKey(key, a)
	defer sh.Unlock()
	sh.CountLookup(e)
	switch {
	case e == nil:
		return false, nil
	case !e.HoldsLimits():
		return true, store.ErrWrongType
	}
	limits := sh.limits(e)
	for i := range limits {
		l := &limits[i]
		if sh.LimitEndNS(&l.Limit, &l.State) <= uint64(a.NowNS) {
			continue
		}
		if ahead := s.Wall.Load(); ahead != 0 {
			l.State.Ring = table.CloneRing(l.State.Ring)
			stateToWall(l, ahead)
		}
		fn(l)
	}
	return true, nil
}

// Replace is Update with all times in limit time.
func (s *Shards) Replace(key []byte, a store.Access, fn func(old store.Value, ok bool) (st store.Value, put bool)) error {
	hash := s.Hash(key)
	sh := s.ShardOf(hash)
	sh.Lock(a.NowNS)
	defer sh.Unlock()
	n, e := sh.Find(hash, key, a)
	st, put := sh.apply(fn, n, e)
	for {
		if !put {
			return nil
		}
		if over(st, a.NowNS, s.WallNS(a.NowNS)) {
			if e != nil {
				sh.Remove(n, e)
			}
			return nil
		}
		more := sh.more(e, key, st)
		again, err := s.claim(sh, more, a.NowNS)
		if err != nil {
			return err
		}
		was := e
		n, e = sh.Slot(hash, key)
		if !again && e == was {
			sh.store(hash, n, e, key, st, a.NowNS)
			return nil
		}
		if !again {
			s.Room.release(more)
		}
		if n, e = sh.Find(hash, key, a); e != nil || was != nil {
			st, put = sh.apply(fn, n, e)
		}
	}
}

// more is the room that a key needs to be given a state: e is nil for a new one.
func (sh *Shard) more(e *table.Slot, key []byte, st store.Value) Need {
	if e == nil {
		return Need{1, table.CostBytes(len(key)) + limitBytes(st)}
	}
	if st.Limits == nil {
		return Need{}
	}
	return Need{Bytes: max(0, limitBytes(st)-sh.LimitBytes(e))}
}

// store puts a state for which there is room: e is nil for a key that is not there.
func (sh *Shard) store(hash uint64, n uint32, e *table.Slot, key []byte, st store.Value, nowNS int64) {
	if e != nil {
		sh.set(n, e, st, key)
	} else {
		sh.Link(hash, key, st, nowNS)
	}
}

// apply calls an Update's function with what the slot holds, or with ok false.
func (sh *Shard) apply(fn func(store.Value, bool) (store.Value, bool), n uint32, e *table.Slot) (st store.Value, put bool) {
	if e == nil {
		return fn(store.Value{}, false)
	}
	return fn(sh.full(n, e), true)
}
