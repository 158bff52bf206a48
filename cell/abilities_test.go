package cell_test

import (
	"math"
	"testing"

	"celld/cell"
	"celld/cell/lease"
)

// Others ask what a limit can do. A shape is packed without loss, as that of a state and as that of its companion.
func TestWhatLimitsCanDo(t *testing.T) {
	type abilities struct{ bookable, additive, isBucket, hasRing, holdsLeases, keepsCalls bool }
	for text, want := range map[string]abilities{
		"9/1m":                         {bookable: true, additive: true, isBucket: true},
		"9/1m,block=1s":                {bookable: true, additive: true},
		"9/1m,warmup=1s,cold=4.5":      {bookable: true, additive: true},
		"9/1m,algo=window":             {bookable: true},
		"9/1m,algo=window,align=clock": {bookable: true},
		"9/month,tz=-01:30":            {bookable: true},
		"9/1m,algo=slide":              {},
		"9/1m,algo=slide,buckets=128":  {hasRing: true},
		"9/1m,algo=log":                {hasRing: true, keepsCalls: true},
		"9/1m,algo=conc":               {hasRing: true, holdsLeases: true},
		"9/1m,algo=window,align=clock,tz=+05:30,block=1s": {bookable: true},
	} {
		l := mustLiteral(t, text)
		got := abilities{l.Bookable(), l.Additive(), l.IsBucket(), l.HasRing(), l.HoldsLeases(), l.KeepsCalls()}
		if got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		for _, leases := range []bool{false, true} {
			l.Leases = leases
			if again := cell.ShapeOf(l.Code(), l.Span()); again != l.Shape {
				t.Errorf("%+v is packed as %+v", l.Shape, again)
			}
		}
		if !l.HoldsLeases() || !l.HasRing() || l.KeepsCalls() || l.Aligned() {
			t.Errorf("%s: its companion does not just hold leases", text)
		}
	}
}

// The lease of a bucket remembers when it flows back. From that follows when the call passed. Any other lease remembers when the call
// passed.
func TestWhenACallPassedThatHoldsALease(t *testing.T) {
	const now, second = int64(aDayIn2027), uint64(1e9)
	for text, ahead := range map[string]uint64{"5/1s": second / 5, "5/1s,algo=window": 0} {
		l := mustLiteral(t, text)
		var st cell.State
		l.Decide(&st, now, 1, cell.Take)
		if taken := l.TakenNS(&st, now); taken != uint64(now)+ahead || ahead == 0 && l.PassedNS(taken) != taken {
			t.Errorf("%s: taken at %d, passed at %d", text, taken, l.PassedNS(taken))
		}
	}
	l := mustLiteral(t, "5/1s")
	var st cell.State
	l.Decide(&st, now, 5, cell.Take)
	l.Book(&st, now, 2)
	if passed := l.PassedNS(l.TakenNS(&st, now)); passed != uint64(now)+2*second/5 || l.PassedNS(second-1) != 0 {
		t.Errorf("what was booked passes at %d", passed)
	}
}

// GiveBack gives to a bucket what has not flowed back yet: of the lease, and in all.
func TestWhatComesBackToABucket(t *testing.T) {
	const start, ms = int64(aDayIn2027), int64(1e6)
	l := mustLiteral(t, "10/1s")
	window := mustLiteral(t, "10/1s,algo=window")
	for _, c := range []struct{ taken, cost, want int64 }{ // TakenNS and the debt after it, in ms from now
		{-400, 1, 500}, {0, 1, 500}, {50, 10, 450}, {500, 1, 400}, {500, 5, 0}, {9_000, 100, 0}, {500, math.MaxInt64, 0},
	} {
		var st cell.State
		l.Decide(&st, start, 10, cell.Take)
		now := start + 500*ms
		l.GiveBack(&st, now, &l.Shape, []lease.Lease{{TakenNS: uint64(now + c.taken*ms), Cost: c.cost, ExpiryNS: uint64(now)}})
		if got := int64(st.A) - now; got != c.want*ms {
			t.Errorf("%+v: a debt of %d ns", c, got)
		}
	}
	var st cell.State
	window.Decide(&st, start, 5, cell.Take)
	if window.GiveBack(&st, start, &l.Shape, []lease.Lease{{TakenNS: uint64(start), Cost: 5, ExpiryNS: uint64(start)}}); st.B != 5 {
		t.Errorf("the lease of a bucket gives to a window: %d are used", st.B)
	}
}

func TestWhatALimitEarns(t *testing.T) {
	l := mustLiteral(t, "10/1s,algo=log")
	for cost, want := range map[int64]uint64{0: 0, 5: 5e8, 10: 1e9, math.MaxInt64: math.MaxInt64, 92_233_720_368: 9_223_372_036_800_000_000,
		92_233_720_369: math.MaxInt64} {
		if got := l.EarnsNS(cost); got != want {
			t.Errorf("%d: %d ns, want %d", cost, got, want)
		}
	}
	var st cell.State
	for _, want := range []uint64{0, 1e9} {
		l.Fit(&st, aDayIn2027, 1)
		if got := l.Forecast(&st, aDayIn2027, 10); got != want {
			t.Errorf("a wait of %d ns, want %d", got, want)
		}
		l.Decide(&st, aDayIn2027, 10, cell.Take)
	}
	l = mustLiteral(t, "10/1s,burst=3")
	if b := l.Bucket(); b.IntervalNS() != 1e8 || b.ToleranceNS() != 3e8 || (cell.Bucket{}).IntervalNS() != 1 {
		t.Errorf("an interval of %d, and a tolerance of %d", b.IntervalNS(), b.ToleranceNS())
	}
}
