package cell

import "math"

// TokenCall is one call of GCRA, the command that Redis 8.8 nearly had (src/gcra.c in its repository): CL.THROTTLE with a
// period in parts of seconds, and an emission interval in whole µs.
type TokenCall struct {
	MaxBurst  int64   // 0 or more
	PerPeriod int64   // tokens in each period, 1 or more
	PeriodS   float64 // seconds, more than 0 and less than 1e12
	Tokens    int64   // that the call takes, 1 or more
}

// Bucket returns the bucket of a call, and the quantity to ask it for.
//
// The emission interval is period / tokens rounded to the nearest µs, 1 at least, as in Redis. The error is a *RangeError:
// for "tokens" where their cost does not fit int64 µs, and for "max_burst" where it takes 292 years or more to flow back,
// as TATs are ns here; Redis's are µs, and it lets 292,000 years pass.
func (c TokenCall) Bucket() (b Bucket, quantity int64, err error) {
	us := max(1, int64(float64(c.PeriodS*1e6)/float64(c.PerPeriod)+0.5))
	switch {
	case us > math.MaxInt64/c.Tokens:
		return Bucket{}, 0, &RangeError{"tokens", c.Tokens}
	case us > math.MaxInt64/1000, c.MaxBurst > math.MaxInt64/(us*1000)-2:
		return Bucket{}, 0, &RangeError{"max_burst", c.MaxBurst}
	}
	capacity := c.MaxBurst + 1
	// More than the capacity never passes, however much more it is.
	return Bucket{capacity: capacity, intervalNS: us * 1000, toleranceNS: us * 1000 * capacity}, min(c.Tokens, capacity+1), nil
}
