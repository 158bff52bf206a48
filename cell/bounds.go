package cell

import "math"

const nsPerDay, nsPerSecond, nsPerMS = 86_400_000_000_000, 1_000_000_000, 1_000_000

// The bounds of a literal. A window and a slide count to MaxCost, in any time. Others have an interval in whole nanoseconds, so 10^7 a
// second is exact to 1 %.
const (
	maxCount     = 1<<31 - 1
	maxPerSecond = 10_000_000
	maxBuckets   = 128
	maxCold      = 100_00
	minPeriodNS  = 1_000
	MaxPeriodNS  = 366 * 86_400 * nsPerSecond
	maxWarmupNS  = 24 * 86_400 * nsPerSecond // as a number of ms has to fit Params.Burst
)

// MaxCost is the most that one call may take, and that a window or a slide may count: 285 years of 10^6 a second. JSON and Lua have whole
// numbers up to here.
const MaxCost = 1<<53 - 1

// mostUsed is where a counter stops that Force raises, so that no sum wraps: see Limit.Holds.
const mostUsed = 1 << 53

// latestBooked is the last moment for which a call is booked, in Unix ns: two periods later is still an instant.
const latestBooked = math.MaxInt64 - 2*MaxPeriodNS

// latestEnd is the latest end of what begins before the year 2262.
const latestEnd = math.MaxInt64 + 2*MaxPeriodNS
