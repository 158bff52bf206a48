package table

import (
	"iter"

	"celld/cell"
	"celld/store"
)

func (e *Slot) HoldsLimits() bool { return e.Has(FlagLimits) }

// FirstTally is the number of the first of a key that holds limits.
func (e *Slot) FirstTally() uint32 { return uint32(e.Info.Load()) }

// TalliesOf yields the tallies of a key, none of one that holds no limits. They must not change meanwhile.
func (t *Table) TalliesOf(e *Slot) iter.Seq[*Tally] {
	return func(yield func(*Tally) bool) {
		if !e.HoldsLimits() {
			return
		}
		for n := e.FirstTally(); n != 0; {
			p := t.Tallies.At(n)
			if n = p.Next.Load(); !yield(p) {
				return
			}
		}
	}
}

func (t *Table) SetTouched(e *Slot, nowNS int64) {
	if e.HoldsLimits() {
		t.Tallies.At(e.FirstTally()).TouchedNS.Store(nowNS)
	} else {
		e.SetInfo(TouchedMask, uint64(nowNS)>>TouchedUnit)
	}
}

func (t *Table) TouchedNS(e *Slot) int64 {
	if e.HoldsLimits() {
		return t.Tallies.At(e.FirstTally()).TouchedNS.Load()
	}
	return int64(e.Info.Load() & TouchedMask << TouchedUnit)
}

// AddTally puts a new tally before the others of a key.
func (t *Table) AddTally(e *Slot, policy uint32) *Tally {
	n, p := t.Tallies.take()
	p.Policy.Store(policy)
	p.TouchedNS.Store(t.TouchedNS(e))
	next := uint32(0)
	if e.HoldsLimits() {
		next = e.FirstTally()
	}
	p.Next.Store(next)
	e.SetInfo(FlagLimits|TouchedMask, FlagLimits|uint64(n))
	return p
}

// DropTallies removes all limits of a key. It keeps the time of its last use.
func (t *Table) DropTallies(e *Slot) {
	if !e.HoldsLimits() {
		return
	}
	touched := t.TouchedNS(e)
	for n := e.FirstTally(); n != 0; {
		next := t.Tallies.At(n).Next.Load()
		t.Tallies.Put(n)
		n = next
	}
	e.SetInfo(FlagLimits|TouchedMask, uint64(touched)>>TouchedUnit)
}

func (t *Table) FindTally(e *Slot, l *cell.Limit, policy, shape uint32) *Tally {
	for p := range t.TalliesOf(e) {
		if p.Is(l, policy, shape) {
			return p
		}
	}
	return nil
}

func (t *Table) CountTallies(e *Slot) (count int) {
	for range t.TalliesOf(e) {
		count++
	}
	return count
}

// LimitBytes is what the limits of a key take, by the estimate of MaxBytes.
func (t *Table) LimitBytes(e *Slot) (bytes int64) {
	for p := range t.TalliesOf(e) {
		bytes += t.Tallies.Bytes(p)
	}
	return bytes
}

// LimitsEndNS is when the last limit of a key has nothing left to remember.
func (t *Table) LimitsEndNS(e *Slot) (end uint64) {
	for p := range t.TalliesOf(e) {
		end = max(end, t.TallyEndNS(p))
	}
	return end
}

// TallyEndNS is when a tally has nothing left to remember.
func (t *Table) TallyEndNS(p *Tally) uint64 {
	l, st := cell.Limit{Shape: p.Shape()}, t.Tallies.State(p) // all that an end needs; literal would divide
	return t.LimitEndNS(&l, &st)
}

// CostBytes is what a key takes with its limits, by the estimate of MaxBytes.
func (t *Table) CostBytes(n uint32, e *Slot) int64 {
	return CostBytes(t.Keys.length(n, e)) + t.LimitBytes(e)
}

// BaseOf is the tally of the limit from which a companion's leases were taken, or nil.
func (t *Table) BaseOf(e *Slot, companion *Tally) *Tally {
	l := cell.Limit{Shape: companion.Shape()}
	l.Leases = false
	return t.FindTally(e, &l, companion.Policy.Load(), l.Code())
}

// EndNS is when the last of limits that are in limit time has nothing left to remember, in limit time.
func EndNS(l store.Limits, aheadNS int64) (end uint64) {
	for i := range l {
		end = max(end, LimitEndNS(&l[i].Limit, &l[i].State, aheadNS))
	}
	return end
}

// EndOf is when the last of limits has nothing left to remember.
func (t *Table) EndOf(limits store.Limits) (end uint64) { return EndNS(limits, t.Wall.Load()) }

func (p *Tally) HoldsLeases() bool {
	shape := p.Shape()
	return shape.HoldsLeases()
}
