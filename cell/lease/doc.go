// Package lease keeps the leases of a state in the state's own words, in the order in which they expire:
//
//	s := lease.SetIn(&least, &words)                        // two words of a cell.State, which State.Leases passes
//	s.Fit(1)                                                // nothing else allocates
//	s.Add(lease.Lease{ID: 7, ExpiryNS: now + minute, Cost: 2})
//	l, found := s.Find(7, now)
//	for l := range s.DropExpired(now) { … }
//
// A Set is a list of nodes in a ring of words: leases, each with the links that belong to it. Up to 32 nodes are looked at one after
// another. More of them are in three trees as well, by expiry, by ID and by name:
//
//	words:  head │ node 1 │ node 2 │ …                      a node: 10 words
//
//	list:   first ⇄ 3 ⇄ 1 ⇄ 2 ⇄ last                        in the order of expiry
//	                    │
//	                    └▶ link ▶ link                      names of keys
//
//	trees:        1
//	            ┌─┴─┐                                       the tree by expiry also has the sum of the costs below each node, so a
//	            3   2                                       few steps tell what is in use, and when so much of it will be free
//
// Leases that have expired may still lie there. Those that expire before least are gone: Fit takes their room when more is needed, a few
// at a time. So 65,536 leases that expire at one instant need not be removed at one instant.
//
// The package knows neither limits nor clocks: package cell decides by what a Set says.
package lease
