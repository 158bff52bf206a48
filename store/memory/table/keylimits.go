package table

import (
	"iter"

	"celld/cell"
	"celld/store"
)

func (e *Slot) HoldsLimits() bool { return e.Has(FlagLimits) }

// FirstLimit is the number of the first limit entry of a key that holds limits.
func (e *Slot) FirstLimit() uint32 { return uint32(e.Info.Load()) }

// SetFirstLimit makes a limit entry the first of a key that holds limits.
func (e *Slot) SetFirstLimit(n uint32) { e.SetInfo(touchedMask, uint64(n)) }

// LimitsOf yields the limit entries of a key; none if the key holds no limits. They must not change meanwhile.
func (t *Table) LimitsOf(e *Slot) iter.Seq[*LimitEntry] {
	return func(yield func(*LimitEntry) bool) {
		if !e.HoldsLimits() {
			return
		}
		for n := e.FirstLimit(); n != 0; {
			p := t.Limits.At(n)
			if n = p.Next.Load(); !yield(p) {
				return
			}
		}
	}
}

func (t *Table) SetTouched(e *Slot, nowNS int64) {
	if e.HoldsLimits() {
		t.Limits.At(e.FirstLimit()).TouchedNS.Store(nowNS)
	} else {
		e.SetInfo(touchedMask, uint64(nowNS)>>touchedUnit)
	}
}

func (t *Table) TouchedNS(e *Slot) int64 {
	if e.HoldsLimits() {
		return t.Limits.At(e.FirstLimit()).TouchedNS.Load()
	}
	return Info(e.Info.Load()).TouchedNS()
}

// AddLimit puts a new entry of a limit before the others of a key.
func (t *Table) AddLimit(e *Slot, l *cell.Limit, policy uint32) *LimitEntry {
	n, p := t.Limits.alloc()
	t.Limits.begin(p, l, policy)
	p.TouchedNS.Store(t.TouchedNS(e))
	next := uint32(0)
	if e.HoldsLimits() {
		next = e.FirstLimit()
	}
	p.Next.Store(next)
	e.SetInfo(FlagLimits|touchedMask, FlagLimits|uint64(n))
	return p
}

// DropLimits removes all limits of a key. It keeps the time of its last use.
func (t *Table) DropLimits(e *Slot) {
	if !e.HoldsLimits() {
		return
	}
	touched := t.TouchedNS(e)
	for n := e.FirstLimit(); n != 0; {
		next := t.Limits.At(n).Next.Load()
		t.Limits.Free(n)
		n = next
	}
	e.SetInfo(FlagLimits|touchedMask, uint64(touched)>>touchedUnit)
}

func (t *Table) FindLimit(e *Slot, l *cell.Limit, policy, shape uint32) *LimitEntry {
	for p := range t.LimitsOf(e) {
		if t.Limits.Is(p, l, policy, shape) {
			return p
		}
	}
	return nil
}

func (t *Table) CountLimits(e *Slot) (count int) {
	for range t.LimitsOf(e) {
		count++
	}
	return count
}

// LimitBytes is what the limits of a key take, by the estimate of MaxBytes.
func (t *Table) LimitBytes(e *Slot) (bytes int64) {
	for p := range t.LimitsOf(e) {
		bytes += t.Limits.Bytes(p)
	}
	return bytes
}

// LimitsEndNS is when the last limit of a key has nothing left to remember.
func (t *Table) LimitsEndNS(e *Slot) (end uint64) {
	for p := range t.LimitsOf(e) {
		end = max(end, t.EntryEndNS(p))
	}
	return end
}

// EntryEndNS is when a limit entry has nothing left to remember.
func (t *Table) EntryEndNS(p *LimitEntry) uint64 {
	l, st := cell.Limit{Shape: p.Shape()}, t.Limits.State(p) // all that EndNS needs; Limit would divide
	return t.LimitEndNS(&l, &st)
}

// CostBytes is what a key takes with its limits, by the estimate of MaxBytes.
func (t *Table) CostBytes(n uint32, e *Slot) int64 {
	return CostBytes(t.Keys.length(e)) + t.LimitBytes(e)
}

// BaseOf is the limit entry of the limit from which a companion's leases were taken, or nil.
func (t *Table) BaseOf(e *Slot, companion *LimitEntry) *LimitEntry {
	l := cell.Limit{Shape: companion.Shape()}
	l.Leases, l.Name = false, t.Limits.name(companion)
	return t.FindLimit(e, &l, companion.PolicyID(), l.Code())
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

func (p *LimitEntry) HoldsLeases() bool {
	shape := p.Shape()
	return shape.HoldsLeases()
}
