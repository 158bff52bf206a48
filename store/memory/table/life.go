package table

import (
	"celld/cell"
	"celld/store"
)

// EndNS is the first instant at which a slot is dead.
func (t *Table) EndNS(n uint32, e *Slot) uint64 {
	if !e.Has(FlagExpiry) {
		if e.Spent() {
			return Never
		}
		return e.SettledTAT()
	}
	return t.endWithExpiry(n, e)
}

func (t *Table) endWithExpiry(n uint32, e *Slot) uint64 {
	end := cell.ShiftInstant(uint64(t.Expiries[n]), -t.Wall.Load())
	if e.Spent() {
		return end
	}
	return min(end, e.SettledTAT())
}

func (t *Table) State(n uint32, e *Slot) store.Value {
	st := store.Value{TAT: e.SettledTAT()}
	if e.HoldsLimits() {
		st.HoldsLimits = true
	}
	switch {
	case e.Has(FlagNoExpiry):
		st.ExpiryNS = store.NoExpiry
	case e.Has(FlagExpiry):
		st.ExpiryNS = t.Expiries[n]
	}
	return st
}

func (t *Table) Dead(n uint32, e *Slot, nowNS int64) bool { return t.EndNS(n, e) <= uint64(nowNS) }
