package remote

import "errors"

// changes decides on changes of one key, in their order, by one view. It ends in s.answer for each and s.next(q), from any goroutine.
func (s *Store) changes(q *queue, ops []*operation) {
	for _, o := range ops {
		s.answer(o, errors.New("to be written"))
	}
	s.next(q)
}
