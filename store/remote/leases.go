package remote

import (
	"slices"

	"celld/cell"
	"celld/store"
)

// Leases of a Take of several keys have links to these: a view must have all of them before one ends.

// Renew, Release and Settle are store.Store's. Where the view does not have all keys of a lease, Commit reads these, and it must be done
// again.
func (v *View) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	if lacks, err := v.lacksLinks(key, id, a); lacks || err != nil {
		return lacks, err
	}
	return v.Table().Renew(key, id, ns, a)
}

func (v *View) Release(key []byte, id int64, a store.Access) (bool, error) {
	return v.Settle(key, id, 0, a)
}

func (v *View) Settle(key []byte, id, n int64, a store.Access) (bool, error) {
	if lacks, err := v.lacksLinks(key, id, a); lacks || err != nil {
		return lacks, err
	}
	return v.Table().Settle(key, id, n, a)
}

// Give is store.Store's.
func (v *View) Give(key []byte, l *cell.Limit, policy uint32, n int64, a store.Access) (int64, error) {
	return v.Table().Give(key, l, policy, n, a)
}

// lacksLinks reports whether a lease leads to keys that the view does not have. The error is a *store.NoRightError: none of them is read
// then.
func (v *View) lacksLinks(key []byte, id int64, a store.Access) (bool, error) {
	had := len(v.missing)
	linked, err := v.Table().Linked(key, id, a)
	if err != nil {
		return false, err
	}
	for _, key := range linked {
		v.miss([]string{v.store.options.Prefix + string(key)})
	}
	return len(v.missing) > had, nil
}

// Renew, Release, Settle and Give are store.Store's, but nobody waits for them: they return as if there were what they ask for. Where
// the answer counts, they are done on a View.
func (s *Store) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	key = slices.Clone(key)
	s.later(key, true, func(v *View) { _, _ = v.Renew(key, id, ns, v.at(a)) })
	return true, nil
}

func (s *Store) Release(key []byte, id int64, a store.Access) (bool, error) {
	return s.Settle(key, id, 0, a)
}

func (s *Store) Settle(key []byte, id, n int64, a store.Access) (bool, error) {
	key = slices.Clone(key)
	s.later(key, true, func(v *View) { _, _ = v.Settle(key, id, n, v.at(a)) })
	return true, nil
}

func (s *Store) Give(key []byte, l *cell.Limit, policy uint32, n int64, a store.Access) (int64, error) {
	key = slices.Clone(key)
	s.later(key, false, func(v *View) { _, _ = v.Give(key, l, policy, n, v.at(a)) })
	return n, nil
}

// at is an Access at the view's time.
func (v *View) at(a store.Access) store.Access {
	a.NowNS = v.NowNS
	return a
}
