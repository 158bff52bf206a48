package waiting

import (
	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// Giver takes back what it has granted: a store, or some keys of one.
type Giver interface {
	Release(key []byte, id int64, a store.Access) (ended bool, err error)
	GiveBack(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, a store.Access) (given int64, err error)
}

// GivesBack reports whether what a call was granted flows back when its client has gone. A lease with a name stays, as the client may come
// back for it, unless the lease ends with the connection.
func GivesBack(r *store.TakeRequest) bool {
	return r.Err == nil && !r.Taken.Limited && (r.Terms.Name == "" || r.Terms.Bound)
}

// GiveBack gives back what was granted to a call whose client has gone: its lease, or else, if counted is set, what it has taken for good.
// An engine may do that seconds after the grant. What has flowed back by itself until then does not flow back again.
func GiveBack(r *store.TakeRequest, counted bool, to Giver, a store.Access) {
	if r.Terms.Lease != 0 {
		_, _ = to.Release(r.Calls[0].Key, r.Terms.Lease, a)
	}
	if r.Terms.LeaseNS > 0 || !counted { // the lease held all that was taken
		return
	}
	for i := range r.Calls {
		if c := &r.Calls[i]; !c.Limit.HoldsLeases() && !c.Decision.Limited && !c.Ruled {
			taken := c.Limit.TakenAt(&c.Decision, r.Terms.PassNS)
			_, _ = to.GiveBack(c.Key, c.Limit, c.Policy, c.CostOf(r.Taken.Granted), taken, a)
		}
	}
}
