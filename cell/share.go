package cell

import "math"

// Share is the bucket for one of n who share the rate and cannot ask each other: a capacity n times smaller, rounded down, and an
// interval n times longer. The capacity stays 1 at least, unless it was 0. So n shares together let through no more than the whole where
// its capacity is n or more, and where it is less each lets through one call in n intervals. An n below 2 is the whole.
func (b Bucket) Share(n int64) Bucket {
	if n < 2 || b.capacity == 0 {
		return b
	}
	interval := int64(math.MaxInt64)
	if b.intervalNS <= interval/n {
		interval = b.intervalNS * n
	}
	capacity := max(b.capacity/n, 1) // where it is more than 1, capacity × interval is no more than it was
	return Bucket{capacity: capacity, intervalNS: interval, toleranceNS: capacity * interval}
}

// Share is the limit for one of n who share it and cannot ask each other: the same in all but its count, and for gcra its burst, which
// are n times smaller, rounded down. Both stay 1 at least. So n shares together let through no more than the whole promises where these
// are n or more, but for warmup, of which each lets through a call at the same instant. An n below 2 is the whole.
func (l *Limit) Share(n int64) Limit {
	share := *l
	if n < 2 {
		return share
	}
	share.Count = max(l.Count/n, 1)
	if l.Algo == GCRA {
		interval := (l.PeriodNS + share.Count - 1) / share.Count
		share.Burst = max(min(l.Burst/n, math.MaxInt64/interval), 1) // rounding the count down may double the interval
	}
	share.prepare()
	return share
}
