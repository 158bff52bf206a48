package store

// Until leases are there.

func (s *Store) Renew(key []byte, id, ns int64, a Access) bool { return false }
func (s *Store) Release(key []byte, id int64, a Access) bool   { return false }
func (s *Store) Settle(key []byte, id, n int64, a Access) bool { return false }
