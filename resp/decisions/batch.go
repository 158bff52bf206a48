package decisions

// Batch is what a batch has decided, by the rows that it is to be added to.
//
// The first row stays when the batch is over, as the next one is often under the same: then a batch costs no more than one set of
// counters would.
type Batch struct {
	first rowDecisions
	more  []rowDecisions // may have a row twice
}

type rowDecisions struct {
	row *Row
	n   Counts
}

// mostDecided is how many entries a Batch has: 20 KB. One that is full counts at once, whatever becomes of its batch.
const mostDecided = 256

// Empty reports whether nothing has been decided.
func (d *Batch) Empty() bool { return d.first.n == (Counts{}) && len(d.more) == 0 }

// In returns what is counted in a row, until the next call of In.
func (d *Batch) In(row *Row, lane uint8) *Counts {
	if d.first.row == row {
		return &d.first.n
	}
	return d.inMore(row, lane)
}

func (d *Batch) inMore(row *Row, lane uint8) *Counts {
	if d.Empty() {
		d.first.row = row
		return &d.first.n
	}
	for i := len(d.more) - 1; i >= max(0, len(d.more)-8); i-- {
		if r := &d.more[i]; r.row == row {
			return &r.n
		}
	}
	if len(d.more) == mostDecided {
		d.Settle(lane, nil)
	}
	d.more = append(d.more, rowDecisions{row: row})
	return &d.more[len(d.more)-1].n
}

// AddAll counts what another has counted.
func (d *Batch) AddAll(other *Batch, lane uint8) {
	if other.first.row != nil {
		d.In(other.first.row, lane).Add(&other.first.n)
	}
	for i := range other.more {
		r := &other.more[i]
		d.In(r.row, lane).Add(&r.n)
	}
}

// Settle adds the decisions to the totals unless err says that they are not on the disk.
func (d *Batch) Settle(lane uint8, err error) {
	if err == nil {
		d.first.row.add(lane, &d.first.n)
		for i := range d.more {
			r := &d.more[i]
			r.row.add(lane, &r.n)
		}
	}
	d.Clear()
}

// Clear forgets what has been decided.
func (d *Batch) Clear() {
	d.first.n = Counts{}
	d.more = d.more[:0]
}
