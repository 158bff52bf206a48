package shard

import "celld/store"

// Copy gives one key the state of another, in one step for every other call: its TAT or its limits, and its expiry. It reports whether
// it did. It does nothing if there is no such key, or if the other is there and replace is not set. It touches those of both keys that
// are there. The two names must differ.
//
// Leases are not copied, as each is held once: what was taken for them stays taken in the copy. A key with nothing else to remember is
// not copied.
//
// The error is ErrFull, and then nothing has changed.
func (s *Shards) Copy(from, to []byte, replace bool, a store.Access) (copied bool, err error) {
	fromHash, toHash := s.Hash(from), s.Hash(to)
	source, target := s.ShardOf(fromHash), s.ShardOf(toHash)
	paid := Prepaid{Store: s, Shard: target}
	err = paid.Run(s.ShardSetOf(fromHash)|s.ShardSetOf(toHash), a.NowNS, func() error {
		n, e := source.Find(fromHash, from, a)
		if e == nil {
			return nil
		}
		o, old := target.Find(toHash, to, a)
		if old != nil && !replace {
			return nil
		}
		st := source.full(n, e)
		if st.Limits != nil {
			limits := withoutLeases(*st.Limits).Clone()
			if st.TAT, st.Limits = source.EndOf(limits), &limits; st.TAT <= uint64(a.NowNS) {
				return nil
			}
		}
		if !paid.Claim(target.more(old, to, st)) {
			return ErrNoRoom
		}
		target.store(toHash, o, old, to, st, a.NowNS)
		copied = true
		return nil
	})
	return copied, err
}

// withoutLeases are the limits without the leases, which belong to one key.
func withoutLeases(l store.Limits) (kept store.Limits) {
	for i := range l {
		if !l[i].Limit.HoldsLeases() {
			kept = append(kept, l[i])
		}
	}
	return kept
}
