package decide

import (
	"math"
	"testing"
	"time"

	"celld/store"
)

// The replies are those that Redis's documentation of GCRA shows (redis/docs, content/develop/using-commands/rate-limiting.md),
// and its tests ask for (tests/unit/gcra.tcl).
func TestGCRA(t *testing.T) {
	c := newWorld(t)
	for _, reply := range []string{
		":0\r\n:4\r\n:3\r\n:-1\r\n:2", ":0\r\n:4\r\n:2\r\n:-1\r\n:4", ":0\r\n:4\r\n:1\r\n:-1\r\n:6", ":0\r\n:4\r\n:0\r\n:-1\r\n:8",
		":1\r\n:4\r\n:0\r\n:2\r\n:8",
	} {
		c.want("GCRA api:user:1 3 5 10", "*5\r\n"+reply+"\r\n")
	}
	c.sleep(time.Millisecond)
	c.want("gcra api:user:1 3 5 10", "*5\r\n:1\r\n:4\r\n:0\r\n:2\r\n:8\r\n") // rounded up
	c.sleep(1999 * time.Millisecond)
	c.want("GCRA api:user:1 3 5 10", "*5\r\n:0\r\n:4\r\n:0\r\n:-1\r\n:8\r\n")
	c.want("GCRA api:user:123 5 30 60 TOKENS 3", "*5\r\n:0\r\n:6\r\n:3\r\n:-1\r\n:6\r\n")
	c.want("GCRA api:user:123 5 30 60 tokens 4", "*5\r\n:1\r\n:6\r\n:3\r\n:2\r\n:6\r\n")
	c.want("GCRA api:user:123 5 30 60 TOKENS 7", "*5\r\n:1\r\n:6\r\n:3\r\n:-1\r\n:6\r\n") // never
	c.want("GCRA new 5 30 60 TOKENS 4000000000000", "*5\r\n:1\r\n:6\r\n:6\r\n:-1\r\n:0\r\n")
	if n := c.Store.Len(c.NowNS); n != 2 {
		t.Errorf("%d keys", n)
	}
	c.want("GCRA k 1 10000 1", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n")
	if n := c.Store.Len(c.NowNS); n != 3 {
		t.Errorf("%d keys", n)
	}
	c.want("GCRA half 1 2 0.5", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n")
	c.want("GCRA half 0 1 1e-9", "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n") // 1 µs at least
	c.want("GCRA max 0 1 60", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n")

	// It is CL.THROTTLE's key, and a rule's.
	c.want("CL.THROTTLE max 0 1 60", "*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n")
	c.want("CL.RULE ADD DENY evil EX 90", ":1\r\n")
	c.want("GCRA evil 5 30 60", "*5\r\n:1\r\n:0\r\n:0\r\n:90\r\n:90\r\n")
	c.want("CL.RULE ADD ALLOW good", ":1\r\n")
	c.want("GCRA good 5 30 60", "*5\r\n:0\r\n:6\r\n:6\r\n:-1\r\n:0\r\n")
	c.do("CL.TAKE", "limits", "5/1h")
	c.want("GCRA limits 5 30 60", "-ERR "+store.ErrWrongType.Error()+"\r\n")
}

func TestGCRAErrors(t *testing.T) {
	c := newWorld(t)
	const (
		arity    = "-ERR wrong number of arguments for 'gcra' command\r\n"
		positive = "-ERR value is out of range, must be positive\r\n"
		integer  = "-ERR value is not an integer or out of range\r\n"
		from1    = "-ERR value is out of range, value must between 1 and 9223372036854775807\r\n"
		float    = "-ERR value is not a valid float\r\n"
		period   = "-ERR period must be > 0 and < 1e12\r\n"
		syntax   = "-ERR syntax error\r\n"
		missing  = "-ERR Missing TOKENS value\r\n"
		overflow = "-ERR GCRA limiting uses microsecond accuracy. Combination of period, tokens_per_period and "
		tokens   = overflow + "TOKENS would cause an overflow\r\n"
		burst    = overflow + "max_burst would cause an overflow\r\n"
	)
	for line, want := range map[string]string{
		"GCRA k 10 5 10 TOKENS 1 2": arity,
		"GCRA k -1 5 10":            positive, "GCRA k x 5 10": positive, "GCRA k 9223372036854775808 5 10": positive,
		"GCRA k 10 0 10": from1, "GCRA k 10 -1 10": from1, "GCRA k 10 x 10": integer, "GCRA k 10 05 10": integer,
		"GCRA k 10 5 0": period, "GCRA k 10 5 -1": period, "GCRA k 10 5 1e12": period, "GCRA k 10 5 inf": period, "GCRA k 10 5 x": float,
		"GCRA k 10 5 nan": float, "GCRA k 10 5 10 TOKENS": missing, "GCRA k 10 5 10 TOKENS 0": from1, "GCRA k 10 5 10 TOKENS -1": from1,
		"GCRA k 10 5 10 TOKENS x": integer, "GCRA k 10 5 10 NOSUCH": syntax, "GCRA k 10 5 10 NOSUCH 1": syntax,
		"GCRA k x x x x": positive, "GCRA k 1 x x x": integer, "GCRA k 1 1 x x": float, "GCRA k 1 1 0 x": period,
		"GCRA k 1 1 86400 TOKENS 200000000": tokens, "GCRA k 200000000 1 86400": burst, "GCRA k 1 1 2147483647 TOKENS 2147483647": tokens,
		"GCRA k 9223372036854775807 1 1": burst,
	} {
		c.want(line, want)
	}
	if n := c.Store.Len(c.NowNS); n != 0 {
		t.Errorf("%d keys", n)
	}
}

// Doubles are read as C's strtod does, with Redis's checks.
func TestDoubles(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, "1.": 1, ".5": 0.5, "+1e3": 1000, "-2E-1": -0.2, "0x10": 16, "0X.8": 0.5, "0x1p4": 16, "-0x1P-1": -0.5, "0": 0, "0e9": 0,
		"-0.0": 0, "0x0": 0, "0x0.0p9": 0, "00": 0, "inf": math.Inf(1), "-Infinity": math.Inf(-1), "5e-324": 5e-324, "1e0": 1, "0x1e": 30,
	} {
		if got, ok := parseDouble(text); !ok || got != want {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "x", "nan", "NaN", "1_000", "0x_1", "1e999", "-1e999", "1e-999", "0x1p-9999", ".", "0x", "0x.", "1e", "0x1p", "--1", "+-1",
		" 1", "1 ", "1\x00", "infx", "1p3",
	} {
		if got, ok := parseDouble(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
