package argument

import (
	"math"
	"strconv"
	"testing"
)

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		if got, ok := ParseInt([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "-", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1x", "0x1", "1e3", "1.0", "--1", "9223372036854775808", "-9223372036854775809",
		"99999999999999999999",
	} {
		if got, ok := ParseInt([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestParseSigned(t *testing.T) {
	for text, want := range map[string]int64{
		"+5": 5, "-0": 0, "+0": 0, "007": 7, "-007": -7, "00000000000000000000000000005": 5, "-9223372036854775808": math.MinInt64,
		"+9223372036854775807": math.MaxInt64,
	} {
		if got, ok := ParseSigned([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "-", "+", "+-5", "--5", " 5", "5 ", "0x10", "1e3", "1_000", "9223372036854775808", "-9223372036854775809",
		"18446744073709551616", "99999999999999999999999",
	} {
		if got, ok := ParseSigned([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// FuzzIntegers compares with strconv, which reads a superset of what each parser takes.
func FuzzIntegers(f *testing.F) {
	for _, seed := range []string{"0", "-9223372036854775808", "+5", "007", "18446744073709551615", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want, err := strconv.ParseInt(string(b), 10, 64)
		if got, ok := ParseSigned(b); ok != (err == nil) || ok && got != want {
			t.Errorf("parseSigned(%q): %d, %v; strconv %d, %v", b, got, ok, want, err)
		}
		if got, ok := ParseInt(b); ok != (err == nil && strconv.FormatInt(want, 10) == string(b)) || ok && got != want {
			t.Errorf("parseInt(%q): %d, %v", b, got, ok)
		}
	})
}
