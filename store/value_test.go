package store_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"celld/store"
)

// An integer is a count until now, and a TAT from the next ns on.
func TestInteger(t *testing.T) {
	for n, want := range map[int64]store.Value{-1: {Count: -1, ExpiryNS: 9}, 7: {Count: 7, ExpiryNS: 9}, 8: {TAT: 8, ExpiryNS: 9}} {
		if got := store.Integer(n, 7, 9); got != want {
			t.Errorf("%d at 7: %+v, want %+v", n, got, want)
		}
	}
}

// A string is read if it is written as AppendInteger writes it, and what lies ahead of now is a TAT.
func TestParseInteger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`-?[0-9]{0,21}`), rapid.StringMatching(`[+\-0-9a-f_x. ]{0,6}`),
			rapid.Custom(func(t *rapid.T) string {
				near := rapid.SampledFrom([]string{"-9223372036854775808", "9223372036854775808", "18446744073709551616", "0",
					"1700000000000000000"}).Draw(t, "near")
				n, _ := new(big.Int).SetString(near, 10)
				return n.Add(n, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "by"))).String()
			})).Draw(t, "text")
		nowNS := rapid.OneOf(rapid.Int64Min(0), rapid.Int64Range(1.7e18-3, 1.7e18+3)).Draw(t, "now")
		n, number := new(big.Int).SetString(text, 10)
		number = number && n.String() == text && n.Cmp(big.NewInt(math.MinInt64)) >= 0 && (n.Sign() < 0 || n.IsUint64())
		v, ok := store.ParseInteger([]byte(text), nowNS)
		switch {
		case ok != number:
			t.Fatalf("%q is read: %v", text, ok)
		case !ok && v != store.Value{}:
			t.Fatalf("%q, which is none, is read as %+v", text, v)
		case ok && string(v.AppendInteger(nil)) != text:
			t.Fatalf("%q is read as %+v", text, v)
		case ok && v.IsCount() != (n.Cmp(big.NewInt(nowNS)) <= 0):
			t.Fatalf("%q at %d is read as %+v", text, nowNS, v)
		}
	})
	for text, count := range map[string]bool{"7": true, "8": false} {
		if v, ok := store.ParseInteger([]byte(text), 7); !ok || v.IsCount() != count {
			t.Errorf("%s at 7 is read as %+v, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "-", "-0", "00", "01", "+1", " 1", "1\n", "1.0", "1e3", "٣"} {
		if v, ok := store.ParseInteger([]byte(text), 0); ok {
			t.Errorf("%q is read as %+v", text, v)
		}
	}
}
