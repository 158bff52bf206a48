package cell_test

import (
	"testing"

	"celld/cell"
)

// A Give ends some leases at a time, so that it takes no longer than others may wait. All of them together give back what one would.
func TestGiveEndsSomeLeasesAtATime(t *testing.T) {
	l := mustLiteral(t, "65536/1h,algo=conc")
	var st cell.State
	const leases = 10_000
	for i := range int64(leases) {
		decide(&l, &st, aDayIn2027+i, 2, cell.Take)
		l.IdentifyLease(&st, aDayIn2027+i, cell.Lease{ID: 1 + uint64(i)})
	}
	const want = 2*leases - 7
	calls, given := 0, int64(0)
	for given < want {
		some := l.Give(&st, aDayIn2027+leases, want-given)
		if some < 1 || some > 2*cell.MostGiven {
			t.Fatalf("%d of %d after %d", some, want-given, given)
		}
		calls, given = calls+1, given+some
	}
	if most := leases/cell.MostGiven + 1; given != want || calls > most {
		t.Errorf("%d in %d calls, want %d in %d", given, calls, want, most)
	}
	if cell.Leased(&st) != 7 || cell.Leases(&st) != 4 {
		t.Errorf("%d in %d leases are left, want 7 in 4", cell.Leased(&st), cell.Leases(&st))
	}
	for id := uint64(1); id <= 4; id++ {
		if _, found := cell.FindLease(&st, id, aDayIn2027+leases); !found {
			t.Errorf("lease %d is gone, though others end later", id)
		}
	}
}
