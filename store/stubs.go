package store

import "errors"

// Until leases and queues are there.

var (
	ErrUnblocked      = errors.New("unblocked")
	ErrTooManyWaiters = errors.New("too many")
	ErrRefused        = errors.New("refused")
)

func (s *Store) Renew(key []byte, id, ns int64, a Access) bool { return false }
func (s *Store) Release(key []byte, id int64, a Access) bool   { return false }
func (s *Store) Settle(key []byte, id, n int64, a Access) bool { return false }
func (s *Store) Leave(r *TakeRequest, why error) bool          { return false }
func (s *Store) SetMaxWaiters(int64)                           {}
func (s *Store) Waiting() (callers, keys int64)                { return 0, 0 }
