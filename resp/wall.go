package resp

import (
	"time"

	"celld/resp/gate"
)

// leastStepNS is the smallest difference that counts as a step of the wall clock. NTP slews smaller ones.
const leastStepNS = 100_000_000

// followWall notices when the wall clock was set.
func (srv *Server) followWall() {
	if srv.upkeep.readClocks == nil || srv.sessions.Gate.Has(gate.Loading) {
		return
	}
	wallNS, nowNS, ok := srv.upkeep.readClocks()
	if by := wallNS - srv.sessions.Store.WallNS(nowNS); ok && max(by, -by) >= leastStepNS {
		srv.setWall(wallNS, nowNS, by)
	}
}

// setWall runs while no command does, so every command sees one wall time only.
func (srv *Server) setWall(wallNS, nowNS, by int64) {
	srv.sessions.Execution.Lock()
	srv.sessions.Store.SetWall(wallNS, nowNS)
	srv.sessions.Execution.Unlock()
	srv.sessions.Persist.WallSet()
	srv.sessions.Stats.ClockSteps.Add(1)
	srv.sessions.Log.Warn("the wall clock was set; limits keep what is left of them", "by", time.Duration(by).Round(time.Millisecond))
}
