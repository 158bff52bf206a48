package rdb

import (
	"bytes"
	"math"
	"testing"

	"celld/persistence/source"
	"celld/store"

	"pgregory.net/rapid"
)

// someTAT and someNS are near and far from each other, and from the ends of what there is.
func someTAT(t *rapid.T) uint64 {
	return rapid.OneOf(rapid.Uint64Min(1), rapid.Uint64Range(1, 5_000_000), rapid.Uint64Range(1.7e18-5_000_000, 1.7e18+5_000_000),
		rapid.Uint64Range(math.MaxInt64-5_000_000, math.MaxInt64+5_000_000),
		rapid.Uint64Range(math.MaxUint64-5_000_000, math.MaxUint64)).Draw(t, "tat")
}

func someNS(t *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64Range(1, math.MaxInt64), rapid.Int64Range(1, 5_000_000),
		rapid.Int64Range(1.7e18-5_000_000, 1.7e18+5_000_000),
		rapid.Int64Range(math.MaxInt64-5_000_000, math.MaxInt64)).Draw(t, "ns")
}

// endNS is when a state is over, by store's definition.
func endNS(st store.Value) uint64 {
	if st.ExpiryNS > 0 {
		return min(st.TAT, uint64(st.ExpiryNS))
	}
	return st.TAT
}

// A TAT comes back from a file as it was, except that an expiry is rounded up to ms, or left out if it is that of the TAT. A file always
// says when it ends, so that it is no count afterwards.
func TestExpiryMS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := store.Value{TAT: someTAT(t), ExpiryNS: rapid.SampledFrom([]int64{store.AtTAT, store.NoExpiry, someNS(t)}).Draw(t, "expiry")}
		ms := ExpiryMS(was)
		is := WithExpiry(store.Value{TAT: was.TAT}, ms)
		if end := ceilMS(was.TAT); ms < 0 || ms > end && (was.ExpiryNS != store.NoExpiry || ms > end+persistedMS) {
			t.Errorf("%+v expires at %d ms, and its TAT is at %d", was, ms, end)
		}
		if later := endNS(is) - endNS(was); is.TAT != was.TAT || later >= nsPerMS || is.ExpiryNS < store.NoExpiry {
			t.Errorf("%+v became %+v, %d ns later", was, is, later)
		}
		if (is.ExpiryNS == store.NoExpiry) != (was.ExpiryNS == store.NoExpiry) || was.ExpiryNS == store.AtTAT && is != was {
			t.Errorf("%+v became %+v", was, is)
		}
		if again := WithExpiry(is, ExpiryMS(is)); again != is {
			t.Errorf("%+v became %+v, and that %+v", was, is, again)
		}
	})
}

// What was written as a TAT and is read when it has passed is over. AtTAT is the expiry of a count that is.
func TestATATThatHasPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := store.Value{TAT: min(someTAT(t), math.MaxInt64)}
		was.ExpiryNS = rapid.SampledFrom([]int64{store.AtTAT, store.NoExpiry}).Draw(t, "expiry")
		if is := WithExpiry(store.Value{Count: int64(was.TAT)}, ExpiryMS(was)); is.ExpiryNS != store.AtTAT {
			t.Errorf("%+v became %+v", was, is)
		}
	})
}

// A count keeps its expiry, which is rounded up to ms, unless the expiry is within 3 ms of the instant that the count would be as a TAT.
func TestExpiryOfACount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := store.Value{Count: rapid.Int64().Draw(t, "count"), ExpiryNS: store.NoExpiry}
		if rapid.Bool().Draw(t, "expires") {
			was.ExpiryNS = someNS(t)
		}
		if since := was.ExpiryNS - was.Count; was.Count >= 0 && was.ExpiryNS > 0 && since > -nsPerMS && since < (persistedMS+1)*nsPerMS {
			t.Skip("it may be a TAT")
		}
		is := WithExpiry(store.Value{Count: was.Count}, ExpiryMS(was))
		if later := is.ExpiryNS - was.ExpiryNS; is.Count != was.Count || later < 0 || later >= nsPerMS || was.ExpiryNS < 0 && later != 0 {
			t.Errorf("%+v became %+v", was, is)
		}
	})
}

// An expiry in ms from Redis does not change either, unless it is at the TAT or later: the one that stands for none is 2 ms later.
func TestWithExpiry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tat := someTAT(t)
		ms := rapid.OneOf(rapid.Int64Range(-1, math.MaxInt64), rapid.Int64Range(-1, 5),
			rapid.Int64Range(max(ceilMS(tat)-5, 0), ceilMS(tat)+5),
			rapid.Int64Range(math.MaxInt64/nsPerMS-5, math.MaxInt64/nsPerMS+5)).Draw(t, "ms")
		st := WithExpiry(store.Value{TAT: tat}, ms)
		want := max(ms, 1)
		switch {
		case ms < 0 || ms == ceilMS(tat)+persistedMS:
			want = ceilMS(tat) + persistedMS
		case ms >= ceilMS(tat):
			want = ceilMS(tat)
		case ms > math.MaxInt64/nsPerMS: // later than a State's can be
			want = math.MaxInt64/nsPerMS + 1
		}
		if got := ExpiryMS(st); got != want || st.ExpiryNS < store.NoExpiry {
			t.Errorf("%d, %d: %+v has expiry %d, want %d", tat, ms, st, got, want)
		}
	})
}

// Lengths are written as Redis does, and read back.
func TestLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 70), rapid.Uint64Range(1<<14-5, 1<<14+5),
			rapid.Uint64Range(1<<32-5, 1<<32+5)).Draw(t, "n")
		b := appendLength(nil, n)
		r := &reader{Source: source.New(bytes.NewReader(b), int64(len(b)), nil)}
		if got := r.length(); got != n || r.err != nil || r.Left() != 0 {
			t.Errorf("%d is written as %x, and read as %d, %v", n, b, got, r.err)
		}
	})
}
