package remote

import (
	"errors"
	"time"

	"celld/store"
	"celld/store/policy"
)

// View is some keys of the engine in a table of their own. Handlers change it as they change the table in memory.
type View struct {
	*store.Store
	NowNS int64 // the engine's time when the keys were read
	Err   error // after Wake: nothing was read, or stored
}

// Open reads keys, and then wakes w, from any goroutine. Keys are as clients name them, without the prefix.
func (s *Store) Open(keys [][]byte, w store.Waker) *View { return &View{} }

// Commit stores what has changed in a view, if what the engine has is still what was read. It returns true where nothing has changed,
// or v.Err says why nothing can be stored. Else w is woken when that is done: then Conflict says whether it must be done again.
func (v *View) Commit(w store.Waker) bool { return true }

// Conflict reports that the engine had something else by the time of Commit, and nothing was stored. The view has been read anew.
func (v *View) Conflict() bool { return false }

// Close gives up the view's table, which must not be used afterwards.
func (v *View) Close() {}

// policyField is the field of a policy's state.
func (s *Store) policyField(p *policy.Policy) string { return "@" + p.Name }

// takeChange decides on a Take as a change.
func (s *Store) takeChange(r *store.TakeRequest, a store.Access, deadline time.Time, b *batch) {
	r.Err = errors.New("to be written")
	b.answered()
}
