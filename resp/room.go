package resp

import "celld/resp/gate"

// roomRestNS is how long a table refuses nothing until it counts as having room again.
const roomRestNS = 10_000_000_000

// followRoom looks each second whether the table refuses changes, and logs when that begins and when it is over. Who evicts never comes
// here, except for what is larger than the table.
func (srv *Server) followRoom(nowNS int64) {
	if srv.sessions.Gate.Has(gate.Loading) {
		return
	}
	u := &srv.upkeep
	all, keys := srv.sessions.Store.Refused()
	fresh, freshKeys := all-u.refused, keys-u.refusedKeys
	u.refused, u.refusedKeys = all, keys
	switch was := u.full.Load(); {
	case fresh > 0:
		bound := "maxmemory"
		if freshKeys > 0 {
			bound = "max-keys"
		}
		u.fullNS = nowNS
		if u.full.Store(&bound); was == nil {
			srv.sessions.Log.Warn("the table is full, and what is new is refused", "bound", bound, "refused", fresh)
		}
	case was != nil && nowNS-u.fullNS >= roomRestNS:
		u.full.Store(nil)
		srv.sessions.Log.Info("the table has room again")
	}
}
