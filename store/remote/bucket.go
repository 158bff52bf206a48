package remote

import (
	"errors"
	"time"

	"celld/store"
)

var errToBeWritten = errors.New("to be written")

func (s *Store) throttle(r *store.Request, a store.Access, deadline time.Time, b *batch) {}

func (s *Store) take(r *store.TakeRequest, a store.Access, deadline time.Time, b *batch) {}

func (s *Store) answerThrottle(o *operation, err error) {}

func (s *Store) answerTake(o *operation, err error) {}

func sameState(r, first *store.TakeRequest) bool { return false }

func (s *Store) buckets(q *queue, ops []*operation) { _ = errToBeWritten }
