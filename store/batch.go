package store

import "celld/cell"

// Request is one call of a batch.
type Request struct {
	Key      []byte
	Limit    cell.Limit
	Quantity int64
	Decision cell.Decision // out
	Err      error         // out
}

// ThrottleBatch decides on the requests in their order, as that many Throttle calls would.
func (s *Store) ThrottleBatch(reqs []Request, a Access) {
	for i := range reqs {
		r := &reqs[i]
		r.Decision, r.Err = s.Throttle(r.Key, r.Limit, r.Quantity, a)
	}
}
