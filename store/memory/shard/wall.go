package shard

import "celld/store/memory/table"

// SetWall says that the wall clock shows wallNS at nowNS. A call that runs at the same time may see both the old and the new wall
// time; a caller that must not see both has to keep such calls out. SetWall looks at each key: a million, half of them of CL.TAKE, took
// 50 ms.
func (s *Teller) SetWall(wallNS, nowNS int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ahead := wallNS - nowNS
	by := ahead - s.Wall.Swap(ahead)
	for i := range s.All {
		sh := &s.All[i]
		sh.Lock(nowNS)
		sh.setWall(by, wallNS)
		sh.pokeAll(nowNS)
		sh.Unlock()
	}
}

// setWall moves the keys that end by the wall clock to their new places in the wheel. Logs were told in the old wall time, so they
// are told anew.
func (sh *Shard) setWall(byNS, wallNS int64) {
	for n := uint32(1); n < sh.Slabs.Top; n++ {
		e := sh.Slabs.At(n)
		e.Settle()
		if e.List() == table.NoList || !e.HoldsLimits() && !e.Has(table.FlagExpiry) {
			continue
		}
		if e.HoldsLimits() {
			sh.Realign(e, byNS, wallNS)
			sh.untell(e)
			e.TAT.Store(sh.LimitsEndNS(e))
		}
		sh.Wheel.Move(&sh.Slabs, n, e, sh.EndNS(n, e))
	}
	sh.publish()
}
