package cell_test

import (
	"math"

	"pgregory.net/rapid"

	"celld/cell"
)

const maxPeriodSeconds = math.MaxInt64 / 1_000_000_000 // 292 years

const aDayIn2027 = 1_800_000_000_000_000_000 // an instant to begin at

// setting is a limit with the quantities that it stands for, from the model rather than from the limit.
type setting struct {
	params
	cell.Bucket
	capacity, intervalNS, toleranceNS int64
}

func newSetting(t rapid.TB, p params) setting {
	limit, err := cell.NewBucket(p.maxBurst, p.count, p.period)
	if err != nil {
		t.Fatalf("NewBucket%+v: %v", p, err)
	}
	return setting{p, limit, p.maxBurst + 1, p.interval().Int64(), p.tolerance().Int64()}
}

// drawSetting draws a limit from one call in 292 years to 10^9 a second, with a burst from -1 to as much as there may be.
func drawSetting(t *rapid.T) setting {
	const year, most = 31_536_000, maxPeriodSeconds
	p := params{period: rapid.OneOf(
		rapid.SampledFrom([]int64{1, 60, 3600, 86400, year, most}),
		rapid.Int64Range(1, year),
		rapid.Int64Range(1, most),
	).Draw(t, "period")}
	p.count = rapid.OneOf(
		rapid.SampledFrom([]int64{1, p.period, p.period * 1_000_000_000}),
		rapid.Int64Range(1, 1000),
		rapid.Int64Range(1, p.period*1_000_000_000),
	).Draw(t, "count")
	largest := math.MaxInt64 / p.interval().Int64()
	p.maxBurst = rapid.OneOf(
		rapid.SampledFrom([]int64{-1, 0, largest - 1}),
		rapid.Int64Range(0, min(20, largest-1)),
		rapid.Int64Range(-1, largest-1),
	).Draw(t, "max burst")
	return newSetting(t, p)
}

// drawQuantity draws what a caller asks for: mostly something that may pass, at times a refund, a peek or far too much.
func (s setting) drawQuantity(t *rapid.T) int64 {
	affordable := math.MaxInt64 / s.intervalNS
	return rapid.OneOf(
		rapid.SampledFrom([]int64{1, 0, -1, s.capacity, -s.capacity, affordable, -affordable}),
		rapid.Int64Range(0, s.capacity),
		rapid.Int64Range(-affordable, affordable),
		anyInt64(),
	).Draw(t, "quantity")
}

// drawTake draws a quantity that passes when the key is full.
func (s setting) drawTake(t *rapid.T) int64 {
	return rapid.OneOf(
		rapid.Just(min(1, s.capacity)),
		rapid.Int64Range(0, s.capacity),
	).Draw(t, "take")
}

// drawTAT draws a state: of a new key, of a key under this limit, or of a key under a far longer limit.
func (s setting) drawTAT(t *rapid.T, now int64) uint64 {
	return rapid.OneOf(
		rapid.SampledFrom([]uint64{0, uint64(now), uint64(now) + uint64(s.toleranceNS)}),
		rapid.Uint64Range(uint64(now), uint64(now)+uint64(s.toleranceNS)),
		rapid.Uint64(),
	).Draw(t, "TAT")
}

// drawWait draws for how long a caller waits after d: not at all, as told, a nanosecond less, or around the interval.
func (s setting) drawWait(t *rapid.T, d cell.Decision) int64 {
	told := int64(min(d.RetryAfterNS, math.MaxInt64))
	if d.RetryAfterNS == cell.Never {
		told = s.intervalNS
	}
	return rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, told, max(told-1, 0), s.intervalNS - 1, s.intervalNS}),
		rapid.Int64Range(0, s.intervalNS),
		rapid.Int64Range(0, s.toleranceNS),
	).Draw(t, "wait")
}

// later is now + waitNS, held at the end of time.
func later(now, waitNS int64) int64 { return now + min(waitNS, math.MaxInt64-now) }

// anyInt64 draws from the whole range, and often from near the bounds of this arithmetic.
func anyInt64() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-3, 100),
		rapid.SampledFrom([]int64{
			math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt32, math.MaxInt32,
			maxPeriodSeconds - 1, maxPeriodSeconds, maxPeriodSeconds + 1, -maxPeriodSeconds, -maxPeriodSeconds - 1, 1_000_000_000,
			1_000_000_001, 18446744074, 1 << 62,
		}),
	)
}
