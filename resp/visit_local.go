package resp

import (
	"errors"

	"celld/store"
	"celld/store/memory"
	"celld/store/remote"
)

// localView is the table that decides while the engine does not (--store-failure local), for commands on the leases that it has granted.
type localView struct {
	*memory.Store
	nowNS int64
}

func (v localView) Foreign([]byte) (kind string, foreign bool) { return "", false }
func (v localView) Table() *memory.Store                       { return v.Store }
func (v localView) TimeNS() int64                              { return v.nowNS }
func (v localView) Failure() error                             { return nil }
func (v localView) Commit(store.Waker) bool                    { return true }
func (v localView) Conflict() bool                             { return false }
func (v localView) Close()                                     {}

// visitLocally has a visit that the engine has not answered run on the local table, and reports whether it is about a lease there.
func (s *Session) visitLocally(v *visit) bool {
	switch v.row.Name {
	case "cl.release", "cl.renew", "cl.settle":
	default:
		return false
	}
	e, ok := s.srv.engine.(interface{ Local() *memory.Store })
	if !ok || !errors.As(v.view.Failure(), new(*remote.DownError)) {
		return false
	}
	table := e.Local()
	if table == nil {
		return false
	}
	mark := len(s.call.Out)
	v.view.Close()
	failed := v.view
	v.view = localView{table, s.srv.clock()}
	s.runVisit(v)
	if string(s.call.Out[mark:]) == ":0\r\n" { // no such lease there: it may be the engine's
		s.call.Out = s.call.Out[:mark]
		v.view = failed
		return false
	}
	return true
}
