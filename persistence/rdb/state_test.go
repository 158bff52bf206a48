package rdb

import (
	"bytes"
	"math"
	"testing"

	"celld/persistence/source"
	"celld/store"

	"pgregory.net/rapid"
)

// ParseTAT reads what AppendTAT writes, and nothing else.
func TestTATText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tat := rapid.Uint64().Draw(t, "tat")
		if got, err := ParseTAT(AppendTAT(nil, tat)); got != tat || err != nil {
			t.Errorf("%d became %d, %v", tat, got, err)
		}
		text := rapid.StringMatching(`[0-9]{0,22}|[+\-0-9a-f_x. ]{0,6}`).Draw(t, "text")
		if got, err := ParseTAT([]byte(text)); err == nil && string(AppendTAT(nil, got)) != text {
			t.Errorf("%q became %d", text, got)
		}
	})
	for _, text := range []string{"", "-1", "+1", "01", "00", " 1", "1 ", "1\n", "18446744073709551616", "20000000000000000000",
		"99999999999999999999", "1e3", "٣"} {
		if got, err := ParseTAT([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// someTAT and someNS are near and far from each other, and from the ends of what there is.
func someTAT(t *rapid.T) uint64 {
	return rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 5_000_000), rapid.Uint64Range(1.7e18-5_000_000, 1.7e18+5_000_000),
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

// A state comes back from a file as it was, except that an expiry is rounded up to ms, or left out if it is that of the TAT.
func TestExpiryMS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := store.Value{TAT: someTAT(t), ExpiryNS: rapid.SampledFrom([]int64{store.AtTAT, store.NoExpiry, someNS(t)}).Draw(t, "expiry")}
		ms := ExpiryMS(was)
		is := StateOf(was.TAT, ms)
		if later := endNS(is) - endNS(was); is.TAT != was.TAT || later >= nsPerMS || is.ExpiryNS < store.NoExpiry {
			t.Errorf("%+v became %+v, %d ns later", was, is, later)
		}
		if (is.ExpiryNS == store.NoExpiry) != (was.ExpiryNS == store.NoExpiry) || was.ExpiryNS == store.AtTAT && is != was {
			t.Errorf("%+v became %+v", was, is)
		}
		if again := StateOf(is.TAT, ExpiryMS(is)); again != is {
			t.Errorf("%+v became %+v, and that %+v", was, is, again)
		}
	})
}

// An expiry in ms from Redis does not change either, unless it is at the TAT or later.
func TestStateOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tat := someTAT(t)
		ms := rapid.OneOf(rapid.Int64Range(-1, math.MaxInt64), rapid.Int64Range(-1, 5),
			rapid.Int64Range(max(ceilMS(tat)-5, 0), ceilMS(tat)+5),
			rapid.Int64Range(math.MaxInt64/nsPerMS-5, math.MaxInt64/nsPerMS+5)).Draw(t, "ms")
		st := StateOf(tat, ms)
		want := max(ms, 1)
		switch {
		case ms < 0:
			want = -1
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
