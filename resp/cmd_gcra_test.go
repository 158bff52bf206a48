package resp

import "testing"

// The replies are those that Redis's documentation of GCRA shows (redis/docs, content/develop/using-commands/rate-limiting.md),
// and its tests ask for (tests/unit/gcra.tcl).
func TestGCRA(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	for _, reply := range []string{":0\r\n:4\r\n:3\r\n:-1\r\n:2", ":0\r\n:4\r\n:2\r\n:-1\r\n:4", ":0\r\n:4\r\n:1\r\n:-1\r\n:6", ":0\r\n:4\r\n:0\r\n:-1\r\n:8", ":1\r\n:4\r\n:0\r\n:2\r\n:8"} {
		c.want("GCRA api:user:1 3 5 10", "*5\r\n"+reply+"\r\n")
	}
	w.sleepMS(1)
	c.want("gcra api:user:1 3 5 10", "*5\r\n:1\r\n:4\r\n:0\r\n:2\r\n:8\r\n") // rounded up
	w.sleepMS(1999)
	c.want("GCRA api:user:1 3 5 10", "*5\r\n:0\r\n:4\r\n:0\r\n:-1\r\n:8\r\n")
	c.want("GCRA api:user:123 5 30 60 TOKENS 3", "*5\r\n:0\r\n:6\r\n:3\r\n:-1\r\n:6\r\n")
	c.want("GCRA api:user:123 5 30 60 tokens 4", "*5\r\n:1\r\n:6\r\n:3\r\n:2\r\n:6\r\n")
	c.want("GCRA api:user:123 5 30 60 TOKENS 7", "*5\r\n:1\r\n:6\r\n:3\r\n:-1\r\n:6\r\n") // never
	c.want("GCRA new 5 30 60 TOKENS 4000000000000", "*5\r\n:1\r\n:6\r\n:6\r\n:-1\r\n:0\r\n")
	c.want("EXISTS new", ":0\r\n")
	c.want("GCRA k 1 10000 1", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n")
	c.want("EXISTS k", ":1\r\n")
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
	c.want("GCRA limits 5 30 60", "-"+errWrongType+"\r\n")

	full := newWorld(t, "max-keys", "1", "maxmemory-policy", "noeviction").connect()
	full.want("GCRA a 5 30 60", "*5\r\n:0\r\n:6\r\n:5\r\n:-1\r\n:2\r\n")
	full.want("GCRA b 5 30 60", "-"+errOOM+"\r\n")
}

func TestGCRAErrors(t *testing.T) {
	c := newWorld(t).connect()
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
		"GCRA": arity, "GCRA k": arity, "GCRA k 10": arity, "GCRA k 10 5": arity, "GCRA k 10 5 10 TOKENS 1 2": arity,
		"GCRA k -1 5 10": positive, "GCRA k x 5 10": positive, "GCRA k 9223372036854775808 5 10": positive,
		"GCRA k 10 0 10": from1, "GCRA k 10 -1 10": from1, "GCRA k 10 x 10": integer, "GCRA k 10 05 10": integer,
		"GCRA k 10 5 0": period, "GCRA k 10 5 -1": period, "GCRA k 10 5 1e12": period, "GCRA k 10 5 inf": period, "GCRA k 10 5 x": float, "GCRA k 10 5 nan": float,
		"GCRA k 10 5 10 TOKENS": missing, "GCRA k 10 5 10 TOKENS 0": from1, "GCRA k 10 5 10 TOKENS -1": from1, "GCRA k 10 5 10 TOKENS x": integer,
		"GCRA k 10 5 10 NOSUCH": syntax, "GCRA k 10 5 10 NOSUCH 1": syntax,
		"GCRA k x x x x": positive, "GCRA k 1 x x x": integer, "GCRA k 1 1 x x": float, "GCRA k 1 1 0 x": period,
		"GCRA k 1 1 86400 TOKENS 200000000": tokens, "GCRA k 200000000 1 86400": burst, "GCRA k 1 1 2147483647 TOKENS 2147483647": tokens,
		"GCRA k 9223372036854775807 1 1": burst,
	} {
		c.want(line, want)
	}
	c.want("DBSIZE", ":0\r\n")
}
