package cell

// Slide with buckets=n cuts time into sub-windows of period/n, and counts what the last n of them hold, with the one that
// is going on (Sentinel's LeapArray). State.A is the number of the newest that was counted in, since 1970; State.B the sum;
// State.Ring has the counters, number i at i mod n. A span of the period touches n+1 sub-windows, so it lets through what the
// newest may hold more than the count.
func (l *Literal) buckets(st *State, nowNS, cost int64, mode Mode) Decision {
	now := uint64(nowNS)
	newest := max(l.bucketAt(now), st.A)
	sum := l.sum(st, newest)
	passes := sum+uint64(cost) <= uint64(l.Count)
	if cost > 0 && (mode == Force || mode == Take && passes) {
		l.roll(st, newest)
		st.Ring[newest%uint64(l.Buckets)] += uint64(cost)
		st.B += uint64(cost)
		sum = st.B
	}
	reset := uint64(0)
	if sum > 0 {
		reset = l.endOfBuckets(st) - now
	}
	d := l.used(sum, reset)
	if mode != Force && cost > 0 && !passes {
		d.Limited = true
		if cost <= l.Count {
			d.RetryAfterNS = l.bucketsRetry(st, newest, sum+uint64(cost)-uint64(l.Count)) - now
		}
	}
	return d
}

// bucketAt is the number of the sub-window that an instant is in.
func (l *Literal) bucketAt(ns uint64) uint64 {
	high, low := mul(ns, uint64(l.Buckets))
	q, _ := div(high, low, uint64(l.PeriodNS))
	return q
}

// gone is when a sub-window no longer counts: the start of the one n later.
func (l *Literal) gone(number uint64) uint64 {
	high, low := mul(number+uint64(l.Buckets), uint64(l.PeriodNS))
	q, rest := div(high, low, uint64(l.Buckets))
	if rest > 0 {
		q++
	}
	return q
}

// counter is what a sub-window has, seen from when newest is the newest.
func (l *Literal) counter(st *State, number, newest uint64) uint64 {
	n := uint64(l.Buckets)
	if len(st.Ring) == 0 || number > st.A || number+n <= st.A || number+n <= newest {
		return 0
	}
	return st.Ring[number%n]
}

// sum is what the n sub-windows up to newest have.
func (l *Literal) sum(st *State, newest uint64) uint64 {
	n := uint64(l.Buckets)
	switch {
	case st.B == 0 || newest >= st.A+n:
		return 0
	case newest == st.A:
		return st.B
	}
	sum := st.B
	for number := st.A + 1 - min(n, st.A+1); number+n <= newest; number++ {
		sum -= st.Ring[number%n]
	}
	return sum
}

// roll forgets the sub-windows that no longer count.
func (l *Literal) roll(st *State, newest uint64) {
	n := uint64(l.Buckets)
	if newest >= st.A+n {
		clear(st.Ring)
		st.A, st.B = newest, 0
		return
	}
	for st.A < newest {
		st.A++
		counter := &st.Ring[st.A%n]
		st.B -= *counter
		*counter = 0
	}
}

// bucketsRetry is when so much has gone.
func (l *Literal) bucketsRetry(st *State, newest, need uint64) uint64 {
	for number := newest + 1 - min(uint64(l.Buckets), newest+1); number <= newest; number++ {
		has := l.counter(st, number, newest)
		if has >= need {
			return l.gone(number)
		}
		need -= has
	}
	return l.gone(newest) // not reached: what is needed is no more than there is
}

func (l *Literal) giveBuckets(st *State, nowNS, n int64) int64 {
	newest := max(l.bucketAt(uint64(nowNS)), st.A)
	if l.sum(st, newest) == 0 {
		return 0
	}
	l.roll(st, newest)
	given := uint64(0)
	for i := uint64(0); i < uint64(l.Buckets) && given < uint64(n); i++ {
		counter := &st.Ring[(newest-i)%uint64(l.Buckets)]
		part := min(*counter, uint64(n)-given)
		*counter -= part
		given += part
	}
	st.B -= given
	return int64(given)
}

func (l *Literal) endOfBuckets(st *State) uint64 {
	if st.B == 0 {
		return 0
	}
	n := uint64(l.Buckets)
	for number := st.A; number+n > st.A; number-- {
		if st.Ring[number%n] > 0 {
			return l.gone(number)
		}
	}
	return 0
}

// carryBuckets scales the running sum, so that rounding up does not add up.
func (l *Literal) carryBuckets(st *State, old *Literal) {
	n := uint64(l.Buckets)
	var sum, scaled uint64
	for i := uint64(1); i <= n && len(st.Ring) > 0; i++ { // from the oldest: n-1 before A up to A
		counter := &st.Ring[(st.A+i)%n]
		sum += *counter
		next := scale(sum, uint64(l.Count), uint64(old.Count))
		*counter, scaled = next-scaled, next
	}
	st.B = scaled
}
