package view

import "celld/store"

// The leases of a Take of several keys have links to these: a view must hold all of them before a lease ends.

// Renew is store.Keys's, as are Release and Settle. If the view lacks keys of a lease, Commit reads these, and the caller must repeat the
// change.
func (v *View) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	return v.onLease(key, id, a, func() (bool, error) { return v.table.Renew(key, id, ns, a) })
}

func (v *View) Release(key []byte, id int64, a store.Access) (bool, error) {
	return v.onLease(key, id, a, func() (bool, error) { return v.table.Release(key, id, a) })
}

func (v *View) Settle(key []byte, id, n int64, a store.Access, of ...store.NamedCost) (bool, error) {
	return v.onLease(key, id, a, func() (bool, error) { return v.table.Settle(key, id, n, a, of...) })
}

func (v *View) onLease(key []byte, id int64, a store.Access, do func() (bool, error)) (bool, error) {
	if lacks, err := v.lacksLinks(key, id, a); lacks || err != nil {
		return lacks, err
	}
	return do()
}

// lacksLinks reports whether a lease leads to keys that the view does not have. The error is a *store.NoRightError: none of them is read
// then.
func (v *View) lacksLinks(key []byte, id int64, a store.Access) (bool, error) {
	had := len(v.missing)
	linked, err := v.table.Linked(key, id, a)
	if err != nil {
		return false, err
	}
	for _, key := range linked {
		v.miss([]string{v.views.Prefix + string(key)})
	}
	return len(v.missing) > had, nil
}
