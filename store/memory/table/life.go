package table

import (
	"celld/cell"
	"celld/store"
)

// EndNS is the first instant at which a slot is dead.
func (t *Table) EndNS(n uint32, e *Slot) uint64 {
	e.Settle() // a count, too: whoever looks at its end may remove it
	if !e.Has(FlagExpiry) {
		if e.Has(FlagCount) {
			return Never
		}
		return e.SettledTAT()
	}
	return t.endWithExpiry(n, e)
}

func (t *Table) endWithExpiry(n uint32, e *Slot) uint64 {
	end := cell.ShiftInstant(uint64(t.Slabs.expiry(n)), -t.Wall.Load())
	if e.Has(FlagCount) {
		return end
	}
	return min(end, e.SettledTAT())
}

func (t *Table) State(n uint32, e *Slot) store.Value {
	st := store.Value{TAT: e.SettledTAT(), HoldsLimits: e.HoldsLimits()}
	if e.Has(FlagCount) {
		st.Count = int64(e.TAT.Load())
	}
	switch {
	case e.Has(FlagNoExpiry):
		st.ExpiryNS = store.NoExpiry
	case e.Has(FlagExpiry):
		st.ExpiryNS = t.Slabs.expiry(n)
	}
	return st
}

func (t *Table) Dead(n uint32, e *Slot, nowNS int64) bool { return t.EndNS(n, e) <= uint64(nowNS) }
