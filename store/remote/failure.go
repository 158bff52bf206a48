package remote

import "celld/store"

// failure decides while the engine does not.
type failure struct{ store *Store }

func (f *failure) init(s *Store) { f.store = s }

// answered tells of each answer of the engine, or error.
func (f *failure) answered(err error) {}

// down returns the error of calls while it is known that the engine does not answer, nil else. Calls are not sent then.
func (f *failure) down() error { return nil }

// throttle and take answer a call that the engine has not decided, for this reason.
func (f *failure) throttle(r *store.Request, cause error, a store.Access) { r.Err = cause }
func (f *failure) take(r *store.TakeRequest, cause error, a store.Access) { r.Err = cause }
