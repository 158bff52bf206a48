package shard

import (
	"bytes"

	"celld/store"
	"celld/store/memory/table"
)

// Rename moves the state of one key to another, over whatever was there, in one step for every other call. It returns false if there is
// no such key. It touches the key. A key that is renamed to itself stays as it is.
//
// No rename is refused for lack of room. Only a longer name takes more. If that exceeds MaxBytes, other keys are evicted; with
// NoEviction it may exceed MaxBytes, as in Redis. The errors are those of LimitState.Reach.
func (s *Exports) Rename(from, to []byte, a store.Access) (there bool, err error) {
	there, _, err = s.rename(from, to, false, a)
	return there, err
}

// RenameNew is Rename, but moves nothing when there is a key of the new name, which may be the key itself.
func (s *Exports) RenameNew(from, to []byte, a store.Access) (there, moved bool, err error) {
	return s.rename(from, to, true, a)
}

func (s *Exports) rename(from, to []byte, onlyNew bool, a store.Access) (there, moved bool, err error) {
	may, nowNS := a.May, a.NowNS
	fromHash, toHash := s.Hash(from), s.Hash(to)
	source, target := s.ShardOf(fromHash), s.ShardOf(toHash)
	locks := s.ShardSetOf(fromHash) | s.ShardSetOf(toHash)
	s.LockAll(locks, nowNS)
	defer func() {
		s.UnlockAll(locks)
		s.trim(nowNS)
	}()
	a = store.Access{NowNS: nowNS, NoTouch: true}
	n, e := source.Find(fromHash, from, a)
	if e == nil || bytes.Equal(from, to) {
		return e != nil, false, nil
	}
	o, old := target.Find(toHash, to, a)
	if old != nil && onlyNew {
		return true, false, nil
	}
	st := source.full(n, e) // unlink leaves the rings to us
	if st.Limits != nil {
		if st.TAT <= uint64(nowNS) { // its policy has gone, or the wall clock was set, since it was found
			source.Remove(n, e)
			return false, false, nil
		}
		for i := range *st.Limits {
			l := &(*st.Limits)[i]
			if source.LimitEndNS(&l.Limit, &l.State) <= uint64(nowNS) {
				continue // it leads nowhere any more
			}
			if err := l.Reach(may, true, true); err != nil {
				return true, false, err
			}
		}
	}
	s.noteRename(from, to, st)
	if old != nil { // its slot stays: a scan may have passed the place of a new one
		s.Room.Bytes.Add(max(limitBytes(st)-target.LimitBytes(old), 0)) // set gives back what becomes free
		source.Remove(n, e)
	} else {
		s.Room.Bytes.Add(table.CostBytes(len(to)) + limitBytes(st) - source.CostBytes(n, e))
		source.unlink(n, e, false)
	}
	target.store(toHash, o, old, to, st, nowNS)
	target.Find(toHash, to, store.Access{NowNS: nowNS}) // a use of a key that was there
	return true, true, nil
}
