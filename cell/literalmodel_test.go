package cell_test

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"celld/cell"
)

// A model keeps what was taken as it was, and says how much of it counts at an instant from the latest one on, rounded up to
// whole calls. All else about a limit follows from that.
type model interface {
	used(at uint64) int64
	take(now, cost int64)
	give(now, n int64) int64
}

// modelKey is a key under a model.
type modelKey struct {
	cell.Limit
	model
	blocked uint64
}

func (k *modelKey) decide(nowNS, cost int64, mode cell.Mode) cell.Decision {
	now, capacity := uint64(nowNS), k.Capacity()
	fits := func(at uint64) bool { return (cost == 0 || k.used(at)+cost <= capacity) && k.blocked <= at }
	d := cell.Decision{Limit: capacity, RetryAfterNS: cell.Never}
	d.Limited = mode != cell.Force && !fits(now)
	if mode != cell.Peek && cost > 0 && !d.Limited {
		k.take(nowNS, cost)
	}
	begins := mode == cell.Take && d.Limited
	if k.BlockAtFull {
		begins = mode != cell.Peek && cost > 0 && !d.Limited && k.used(now) >= capacity
	}
	if begins && k.blocked <= now && k.BlockNS > 0 {
		k.blocked = now + uint64(k.BlockNS)
	}
	if d.Blocked = k.blocked > now; !d.Blocked {
		d.Remaining = max(0, capacity-k.used(now))
	}
	if d.Limited && cost <= capacity {
		d.RetryAfterNS = first(now, fits) - now
	}
	d.ResetAfterNS = first(now, func(at uint64) bool { return k.used(at) == 0 && k.blocked <= at }) - now
	return d
}

// first is the first instant from now on at which something is true that stays so.
func first(now uint64, is func(uint64) bool) uint64 {
	low, wait := now, uint64(1)
	for !is(low) {
		if wait > math.MaxUint64-low || is(low+wait) {
			break
		}
		low, wait = low+wait, wait*2
	}
	if is(low) {
		return low
	}
	high := low + min(wait, math.MaxUint64-low)
	for high-low > 1 { // not at low, and at high
		if middle := low + (high-low)/2; is(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// A bucket that every nanosecond takes one from, and a call adds an interval to.
type bucketModel struct {
	interval, level *big.Int
	at              uint64
}

func newBucketModel(l cell.Limit) model {
	return &bucketModel{interval: big.NewInt(intervalNS(l)), level: new(big.Int)}
}

func (m *bucketModel) levelAt(at uint64) *big.Int {
	level := new(big.Int).Sub(m.level, new(big.Int).SetUint64(at-m.at))
	if level.Sign() < 0 {
		return new(big.Int)
	}
	return level
}

func (m *bucketModel) used(at uint64) int64 {
	calls, rest := new(big.Int).QuoRem(m.levelAt(at), m.interval, new(big.Int))
	if rest.Sign() > 0 {
		calls.Add(calls, big.NewInt(1))
	}
	return min(calls.Int64(), math.MaxInt64/2)
}

func (m *bucketModel) book(_, at uint64, cost int64) {
	level, was := m.levelAt(at), m.at
	m.level.Add(level.Add(level, new(big.Int).Mul(m.interval, big.NewInt(cost))), new(big.Int).SetUint64(at-was))
}

func (m *bucketModel) take(now, cost int64) {
	was := m.levelAt(uint64(now))
	m.level, m.at = new(big.Int).Mul(m.interval, big.NewInt(cost)), uint64(now)
	if m.level.Add(m.level, was); !m.level.IsInt64() { // debts end there, except what was booked behind a block
		m.level.SetInt64(math.MaxInt64)
		if was.Cmp(m.level) > 0 {
			m.level = was
		}
	}
}

func (m *bucketModel) give(now, n int64) int64 {
	n = min(n, m.used(uint64(now)))
	m.level, m.at = m.levelAt(uint64(now)), uint64(now)
	m.level.Sub(m.level, new(big.Int).Mul(m.interval, big.NewInt(n)))
	if m.level.Sign() < 0 {
		m.level.SetInt64(0)
	}
	return n
}

// mostUsed is where counters stop.
const mostUsed = 1 << 53

// The windows from one in which something was taken on, without gaps. Until the last begins, nothing passes.
type windowModel struct {
	cell.Limit
	windows []window
}

type window struct {
	end uint64
	sum int64
}

func newWindowModel(l cell.Limit) model { return &windowModel{Limit: l} }

func (m *windowModel) used(at uint64) int64 {
	switch last := len(m.windows) - 1; {
	case last < 0 || at >= m.windows[last].end:
		return 0
	case last > 0 && at < m.windows[last-1].end:
		return m.Count
	default:
		return m.windows[last].sum
	}
}

func (m *windowModel) take(now, cost int64) {
	if m.used(uint64(now)) == 0 {
		m.windows = []window{{uint64(windowEnd(m.Limit, now)), 0}}
	}
	i := slices.IndexFunc(m.windows, func(w window) bool { return w.end > uint64(now) })
	m.windows[i].sum = min(m.windows[i].sum+cost, mostUsed)
}

func (m *windowModel) book(from, at uint64, cost int64) {
	last := len(m.windows) - 1
	if last >= 0 && at == m.windows[last].end && from < at {
		m.windows = append(m.windows, window{uint64(windowEnd(m.Limit, int64(at))), cost})
	} else {
		m.take(int64(at), cost)
	}
}

func (m *windowModel) give(now, n int64) (given int64) {
	for given < n && m.used(uint64(now)) > 0 {
		last := len(m.windows) - 1
		w := &m.windows[last]
		part := min(n-given, w.sum)
		given += part
		if w.sum -= part; w.sum > 0 {
			break
		}
		m.windows = m.windows[:last]
		for i := 0; i < last-1; i++ {
			m.windows[i].sum = m.Count // it is no longer known
		}
		if last == 0 || m.windows[last-1].end <= uint64(now) {
			m.windows = nil
		}
	}
	return given
}

// windowEnd asks package time when the window ends that an instant is in.
func windowEnd(l cell.Limit, now int64) int64 {
	if _, zone := zoneOf(l); zone != nil {
		return zonedWindowEnd(l, zone, now)
	}
	zone := time.FixedZone("", int(l.Zone)*60)
	if l.From > 0 {
		return zonedWindowEnd(l, zone, now)
	}
	at := time.Unix(0, now).In(zone)
	date := func(year int, month time.Month, day, hour, minute, second int) int64 {
		return time.Date(year, month, day, hour, minute, second, 0, zone).UnixNano()
	}
	year, month, day := at.Date()
	hour, minute, second := at.Clock()
	switch l.Unit.String() {
	case "second":
		return date(year, month, day, hour, minute, second+1)
	case "minute":
		return date(year, month, day, hour, minute+1, 0)
	case "hour":
		return date(year, month, day, hour+1, 0, 0)
	case "day":
		return date(year, month, day+1, 0, 0, 0)
	case "week":
		for day++; time.Date(year, month, day, 0, 0, 0, 0, zone).Weekday() != time.Monday; day++ {
		}
		return date(year, month, day, 0, 0, 0)
	case "month":
		return date(year, month+1, 1, 0, 0, 0)
	case "year":
		return date(year+1, 1, 1, 0, 0, 0)
	}
	if !l.Clock {
		return now + l.PeriodNS
	}
	epoch := time.Date(1970, 1, 1, 0, 0, 0, 0, zone).UnixNano()
	return now + l.PeriodNS - floorMod(now-epoch, l.PeriodNS)
}

func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

// The costs taken in each window, or sub-window.
type countersModel struct {
	cell.Limit
	parts int64 // of a period
	sums  map[int64]int64
}

func newSlideModel(l cell.Limit) model {
	return &countersModel{Limit: l, parts: 1, sums: map[int64]int64{}}
}
func newBucketsModel(l cell.Limit) model {
	return &countersModel{Limit: l, parts: int64(l.Buckets), sums: map[int64]int64{}}
}

func (m *countersModel) number(at uint64) int64 {
	n := new(big.Int).Mul(new(big.Int).SetUint64(at), big.NewInt(m.parts))
	return n.Quo(n, big.NewInt(m.PeriodNS)).Int64()
}

func (m *countersModel) used(at uint64) (sum int64) {
	number := m.number(at)
	if m.parts > 1 {
		for i := number - m.parts + 1; i <= number; i++ {
			sum += m.sums[i]
		}
		return sum
	}
	left := big.NewInt(m.PeriodNS - int64(at%uint64(m.PeriodNS)))
	weighted := left.Mul(left, big.NewInt(m.sums[number-1]))
	weighted.Add(weighted, big.NewInt(m.PeriodNS-1))
	return m.sums[number] + weighted.Quo(weighted, big.NewInt(m.PeriodNS)).Int64()
}

func (m *countersModel) take(now, cost int64) {
	number := m.number(uint64(now))
	if m.parts > 1 {
		cost = min(cost, mostUsed-m.used(uint64(now)))
	}
	m.sums[number] = min(m.sums[number]+cost, mostUsed)
}

func (m *countersModel) give(now, n int64) (given int64) {
	number := m.number(uint64(now))
	for i := number; i > number-max(m.parts, 2); i-- {
		part := min(n-given, m.sums[i])
		m.sums[i] -= part
		given += part
	}
	return given
}

// The calls. Force leads past the count: then the oldest become one.
type logModel struct {
	cell.Limit
	calls []call
}

type call struct{ at, cost int64 }

func newLogModel(l cell.Limit) model { return &logModel{Limit: l} }

func (m *logModel) used(at uint64) (sum int64) {
	for _, c := range m.calls {
		if uint64(c.at)+uint64(m.PeriodNS) > at {
			sum += c.cost
		}
	}
	return sum
}

func (m *logModel) forget(now int64) {
	for len(m.calls) > 0 && m.calls[0].at+m.PeriodNS <= now {
		m.calls = m.calls[1:]
	}
}

func (m *logModel) take(now, cost int64) {
	m.forget(now)
	if n := len(m.calls); n > 0 && m.calls[n-1].at == now {
		m.calls[n-1].cost += cost
		return
	}
	m.calls = append(m.calls, call{now, cost})
	if int64(len(m.calls)) > m.Count {
		m.calls[1].cost += m.calls[0].cost
		m.calls = m.calls[1:]
	}
}

func (m *logModel) give(now, n int64) (given int64) {
	m.forget(now)
	for i := len(m.calls) - 1; i >= 0 && given < n; i-- {
		part := min(n-given, m.calls[i].cost)
		given += part
		if m.calls[i].cost -= part; m.calls[i].cost == 0 {
			m.calls = m.calls[:i]
		}
	}
	return given
}

// A concModel remembers what was taken until a period later, as a log does, and never makes two calls one.
type concModel struct{ logModel }

func newConcModel(l cell.Limit) model { return &concModel{logModel{Limit: l}} }

func (m *concModel) take(now, cost int64) {
	m.forget(now)
	if n := len(m.calls); n > 0 && m.calls[n-1].at == now {
		m.calls[n-1].cost += cost
		return
	}
	m.calls = append(m.calls, call{now, cost})
}

// Every decision is the model's, however calls, refunds and waits follow each other.
func TestDecideIsTheModel(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		now := drawInstant(t)
		key := modelKey{Limit: l, model: a.model(l)}
		var st cell.State
		var d cell.Decision
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			if rapid.IntRange(0, 5).Draw(t, "gives") == 0 {
				n := drawCost(t, l, d)
				if got, want := l.Give(&st, now, n), key.give(now, n); got != want {
					t.Fatalf("%v at %d gives back %d of %d, and the model %d", l, now, got, n, want)
				}
			}
			cost, mode := drawCall(t, l, &st, now, d)
			d = decide(&l, &st, now, cost, mode)
			if want := key.decide(now, cost, mode); d != want {
				t.Fatalf("%v at %d, cost %d, mode %d:\n got %+v\nwant %+v", l, now, cost, mode, d, want)
			}
		}
	})
}
