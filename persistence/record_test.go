package persistence

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"

	"pgregory.net/rapid"
)

// What appendTAT writes parseTAT reads, and parseTAT reads nothing else.
func TestTATText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tat := rapid.Uint64().Draw(t, "tat")
		if got, err := parseTAT(appendTAT(nil, tat)); got != tat || err != nil {
			t.Errorf("%d became %d, %v", tat, got, err)
		}
		text := rapid.StringMatching(`[0-9]{0,22}|[+\-0-9a-f_x. ]{0,6}`).Draw(t, "text")
		if got, err := parseTAT([]byte(text)); err == nil && string(appendTAT(nil, got)) != text {
			t.Errorf("%q became %d", text, got)
		}
	})
	for _, text := range []string{"", "-1", "+1", "01", "00", " 1", "1 ", "1\n", "18446744073709551616", "20000000000000000000", "99999999999999999999", "1e3", "٣"} {
		if got, err := parseTAT([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// someTAT and someNS are near and far from each other, and from the ends of what there is.
func someTAT(t *rapid.T) uint64 {
	return rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 5_000_000), rapid.Uint64Range(1.7e18-5_000_000, 1.7e18+5_000_000),
		rapid.Uint64Range(math.MaxInt64-5_000_000, math.MaxInt64+5_000_000), rapid.Uint64Range(math.MaxUint64-5_000_000, math.MaxUint64)).Draw(t, "tat")
}

func someNS(t *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64Range(1, math.MaxInt64), rapid.Int64Range(1, 5_000_000), rapid.Int64Range(1.7e18-5_000_000, 1.7e18+5_000_000),
		rapid.Int64Range(math.MaxInt64-5_000_000, math.MaxInt64)).Draw(t, "ns")
}

// endNS is when a state is over, by store's definition.
func endNS(st store.Value) uint64 {
	if st.ExpiryNS > 0 {
		return min(st.TAT, uint64(st.ExpiryNS))
	}
	return st.TAT
}

// A state comes back from a file as it was, but that an expiry is rounded up to ms, or left out where it is the TAT's.
func TestExpiryMS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := store.Value{TAT: someTAT(t), ExpiryNS: rapid.SampledFrom([]int64{store.AtTAT, store.NoExpiry, someNS(t)}).Draw(t, "expiry")}
		ms := expiryMS(was)
		is := stateOf(was.TAT, ms)
		if later := endNS(is) - endNS(was); is.TAT != was.TAT || later >= nsPerMS || is.ExpiryNS < store.NoExpiry {
			t.Errorf("%+v became %+v, %d ns later", was, is, later)
		}
		if (is.ExpiryNS == store.NoExpiry) != (was.ExpiryNS == store.NoExpiry) || was.ExpiryNS == store.AtTAT && is != was {
			t.Errorf("%+v became %+v", was, is)
		}
		if again := stateOf(is.TAT, expiryMS(is)); again != is {
			t.Errorf("%+v became %+v, and that %+v", was, is, again)
		}
	})
}

// Nor does an expiry in ms change that Redis has, as long as it is not that of the TAT or later.
func TestStateOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tat := someTAT(t)
		ms := rapid.OneOf(rapid.Int64Range(-1, math.MaxInt64), rapid.Int64Range(-1, 5), rapid.Int64Range(max(ceilMS(tat)-5, 0), ceilMS(tat)+5),
			rapid.Int64Range(math.MaxInt64/nsPerMS-5, math.MaxInt64/nsPerMS+5)).Draw(t, "ms")
		st := stateOf(tat, ms)
		want := max(ms, 1)
		switch {
		case ms < 0:
			want = -1
		case ms >= ceilMS(tat):
			want = ceilMS(tat)
		case ms > math.MaxInt64/nsPerMS: // later than a State's can be
			want = math.MaxInt64/nsPerMS + 1
		}
		if got := expiryMS(st); got != want || st.ExpiryNS < store.NoExpiry {
			t.Errorf("%d, %d: %+v has expiry %d, want %d", tat, ms, st, got, want)
		}
	})
}

// A stamp has its time and notices what is wrong with the bytes before it.
func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		nowNS := rapid.Int64().Draw(t, "now")
		crc := jonesUpdate(0, before)
		b := appendStamp(bytes.Clone(before), nowNS, crc)
		args, n, what := parseCommand(b[len(before):], nil)
		if n != len(b)-len(before) || what != "" || !bytes.HasPrefix(b, before) {
			t.Fatalf("%q: %d bytes, %s", b, n, what)
		}
		if ns, ok, good := stampOf(args, func() uint64 { return crc }); ns != nowNS || !ok || !good {
			t.Errorf("%q: %d, %v, %v", b, ns, ok, good)
		}
		if _, ok, good := stampOf(args, func() uint64 { return crc ^ 1<<rapid.IntRange(0, 63).Draw(t, "bit") }); !ok || good {
			t.Errorf("%q: a wrong checksum is not noticed", b)
		}
	})
	for _, text := range []string{"", " ", "5", "5 ", "5 0123456789abcde", "5 0123456789abcdefg", "x 0123456789abcdef", " 0123456789abcdef", "5  123456789abcdef", "5 0123456789abcdef 5", "9223372036854775808 0123456789abcdef"} {
		if _, ok, _ := parseStamp([]byte(text), func() uint64 { return 0 }); ok {
			t.Errorf("%q is taken for a stamp", text)
		}
	}
}

// What appendChange writes is read as the same words.
func TestCommandText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
		st := stateOf(someTAT(t), rapid.Int64Range(-1, math.MaxInt64).Draw(t, "ms"))
		var set []string
		set = append(set, "SET", string(key), string(appendTAT(nil, st.TAT)))
		if at := expiryMS(st); at >= 0 {
			set = append(set, "PXAT", string(appendTAT(nil, uint64(at))))
		}
		for _, c := range []struct {
			text []byte
			want []string
		}{
			{appendChange(nil, memory.Change{Key: key, State: st}), set},
			{appendChange(nil, memory.Change{Key: key, Deleted: true}), []string{"DEL", string(key)}},
			{appendChange(nil, memory.Change{Flush: true}), []string{"FLUSHALL"}},
		} {
			args, n, what := parseCommand(c.text, nil)
			if n != len(c.text) || what != "" || string(bytes.Join(args, []byte{0})) != strings.Join(c.want, "\x00") {
				t.Errorf("%q: %q, %s", c.text, args, what)
			}
			for cut := range c.text {
				if args, n, what := parseCommand(c.text[:cut], nil); n != 0 || what != "" {
					t.Fatalf("%q: %q, %d, %s", c.text[:cut], args, n, what)
				}
			}
		}
	})
}

// Lengths are written as Redis does, and read back.
func TestLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 70), rapid.Uint64Range(1<<14-5, 1<<14+5), rapid.Uint64Range(1<<32-5, 1<<32+5)).Draw(t, "n")
		b := appendLength(nil, n)
		r := &rdbReader{source: newSource(bytes.NewReader(b), int64(len(b)), nil)}
		if got := r.length(); got != n || r.err != nil || r.left() != 0 {
			t.Errorf("%d is written as %x, and read as %d, %v", n, b, got, r.err)
		}
	})
}
