package cell_test

import (
	"testing"

	"celld/cell"
	"celld/cell/lease"
)

// A granted lease gets the ID that it is given, and no other.
func TestIdentifyLease(t *testing.T) {
	l := mustLiteral(t, "3/1m,algo=conc")
	var st cell.State
	l.IdentifyLease(&st, aDayIn2027, lease.Lease{ID: 7}) // there is none
	for id := range uint64(3) {
		decide(&l, &st, aDayIn2027, 1, cell.Take)
		l.IdentifyLease(&st, aDayIn2027, lease.Lease{ID: 7 + id, ExpiryNS: 1, Cost: 9, Name: [2]uint64{id}})
		l.IdentifyLease(&st, aDayIn2027, lease.Lease{ID: 99})
	}
	for id := range uint64(3) {
		want := lease.Lease{ID: 7 + id, ExpiryNS: aDayIn2027 + uint64(l.PeriodNS), Cost: 1, Name: [2]uint64{id}}
		if got, found := st.Leases().Find(7+id, aDayIn2027); !found || got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, found := st.Leases().Find(7, aDayIn2027+l.PeriodNS); found {
		t.Error("found after its end")
	}
}

// What was used of another limit is not part of the first lease: that gives back only its own cost.
func TestWhatWasUsedIsNoLease(t *testing.T) {
	const now = aDayIn2027
	bucket, conc := mustLiteral(t, "10/1h"), mustLiteral(t, "10/1h,algo=conc")
	var st cell.State
	bucket.Decide(&st, now, 5, cell.Take)
	conc.Carry(&st, &bucket, now, now)
	conc.Fit(&st, now, 1)
	conc.Decide(&st, now, 1, cell.Take)
	conc.IdentifyLease(&st, now, lease.Lease{ID: 7})
	st.Leases().Drop(7, now)
	if d := conc.Decide(&st, now, 0, cell.Peek); d.Remaining != 5 {
		t.Errorf("%+v", d)
	}
}

// One Give ends only some leases, so it never takes longer than others may wait. All of them together give back as much as one without
// a bound.
func TestGiveEndsSomeLeasesAtATime(t *testing.T) {
	l := mustLiteral(t, "65536/1h,algo=conc")
	var st cell.State
	const leases = 10_000
	for i := range int64(leases) {
		decide(&l, &st, aDayIn2027+i, 2, cell.Take)
		l.IdentifyLease(&st, aDayIn2027+i, lease.Lease{ID: 1 + uint64(i)})
	}
	const want = 2*leases - 7
	calls, given := 0, int64(0)
	for given < want {
		some := l.Give(&st, aDayIn2027+leases, want-given)
		if some < 1 || some > 2*lease.MostGiven {
			t.Fatalf("%d of %d after %d", some, want-given, given)
		}
		calls, given = calls+1, given+some
	}
	if most := leases/lease.MostGiven + 1; given != want || calls > most {
		t.Errorf("%d in %d calls, want %d in %d", given, calls, want, most)
	}
	if st.Leases().Cost() != 7 || st.Leases().Len() != 4 {
		t.Errorf("%d in %d leases are left, want 7 in 4", st.Leases().Cost(), st.Leases().Len())
	}
	for id := uint64(1); id <= 4; id++ {
		if _, found := st.Leases().Find(id, aDayIn2027+leases); !found {
			t.Errorf("lease %d is gone, though others end later", id)
		}
	}
}
