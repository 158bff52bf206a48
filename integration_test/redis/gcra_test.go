package redis

import (
	"strings"
	"testing"
)

// TestGCRAPeriods asks redis-server what is a double: GCRA reads its period as ZADD does a score.
func TestGCRAPeriods(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	const wrong = "-ERR value is not a valid float\r\n"
	for _, text := range []string{
		"1", "0.5", ".5", "5.", "+5", "-5", "007", "1e3", "1E-3", "1e", "1e+", "0x10", "0x1p4", "0x", "0x.8", "0x1.8p1", "0x_1p4",
		"1_000", "1,5", "inf", "-inf", "+Infinity", "INFINITY", "infinit", "nan", "NAN", "-nan", "nan(1)", "", " 1", "1 ", "\t1", "1\x00",
		"1e999", "-1e999", "1e-400", "0e-999", "0x1p-2000", "x", "-", "+", ".", "1..2", "--1", "½",
	} {
		got := celld.Do("GCRA", "k", "5", "30", text) == wrong
		want := strings.HasPrefix(redis.Do("ZADD", "z", text, "m"), "-")
		if got != want {
			t.Errorf("%q is refused: %v, by redis-server %v", text, got, want)
		}
	}
}
