package cell

import "math/bits"

// Algo is how a limit counts. Each has a file of its name.
type Algo uint8

const (
	GCRA   Algo = iota // a bucket that flows back evenly, as CL.THROTTLE's
	Window             // a counter for each window of time
	Slide              // counters of the last windows, weighted or summed
	Log                // the calls themselves
	Conc               // leases: what is in flight
	Warmup             // a bucket of one that gives less after a rest, as Guava's SmoothWarmingUp: gcra with warmup=
)

var algoNames = [...]string{GCRA: "gcra", Window: "window", Slide: "slide", Log: "log", Conc: "conc", Warmup: "warmup"}

func (a Algo) String() string { return algoNames[a] }

// Algos is how many algorithms there are, from 0 on.
func Algos() int { return len(algoNames) }

// Unit is the calendar's window, or Span for one that is a length of time.
type Unit uint8

const (
	Span Unit = iota
	Second
	Minute
	Hour
	Day
	Week // from Monday
	Month
	Year
)

var unitNames = [...]string{Span: "", Second: "second", Minute: "minute", Hour: "hour", Day: "day", Week: "week", Month: "month", Year: "year"}

func (u Unit) String() string { return unitNames[u] }

// Limit is a limit as a caller writes it: 100/1m, 5/1s,algo=log, 10000/month,tz=+08:00. Make one with ParseLimit; two of
// the same text are equal. The zero value is no limit.
type Limit struct {
	Shape
	Params
	BlockNS int64 // a denied key stays denied that long; 0: not longer than its state says
	Shadow  bool  // evaluated, never limits

	gcra Bucket
}

// Shape tells the states of literals under one key apart: limits of the same shape share a state. A change of anything else
// keeps the state.
type Shape struct {
	Algo     Algo
	Unit     Unit
	Clock    bool  // window: begins at multiples of its length since 1970, in its zone
	Buckets  uint8 // slide: sub-windows that are summed, 2..128; 0: two windows, the one before weighted
	ZoneMin  int16 // minutes east of UTC
	Cold     int16 // warmup: how many times longer the interval is when it is cold, in hundredths, 101..MaxCold
	PeriodNS int64 // of a calendar's window the shortest
	Leases   bool  // the companion of such a state: the leases that were taken from it
}

// Aligned reports that the windows are the clock's or the calendar's. Such a limit decides by wall time. Leases do not: they last
// as long as they were told.
func (s *Shape) Aligned() bool { return (s.Clock || s.Unit != Span) && !s.Leases }

// HoldsLeases reports that a state of this shape is one of leases.
func (s *Shape) HoldsLeases() bool { return s.Leases || s.Algo == Conc }

// HasRing reports that a state of this shape has a ring.
func (s *Shape) HasRing() bool { return s.Algo == Log || s.Algo == Conc || s.Buckets > 0 || s.Leases }

// KeepsCalls reports that a state of this shape has the calls themselves, up to Count of them. It may be told in parts: see Parts.
func (s *Shape) KeepsCalls() bool { return s.Algo == Log && !s.Leases }

// CodeOfLeases is the bit of a Code that Leases sets.
const CodeOfLeases = 1 << 7

// Code packs all of a shape except its period, for stores of many. ShapeOf unpacks it.
func (s *Shape) Code() uint32 {
	flags := uint32(0)
	if s.Clock {
		flags = 1 << 6
	}
	if s.Leases {
		flags |= CodeOfLeases
	}
	return uint32(s.Algo) | uint32(s.Unit)<<3 | flags | uint32(s.Buckets)<<8 | uint32(uint16(s.ZoneMin|s.Cold))<<16 // one of them is 0
}

// ShapeOf is the shape of a Code and a period in ns.
func ShapeOf(code uint32, periodNS int64) Shape {
	s := Shape{
		Algo: Algo(code & 7), Unit: Unit(code >> 3 & 7), Clock: code>>6&1 != 0, Leases: code&CodeOfLeases != 0,
		Buckets: uint8(code >> 8), ZoneMin: int16(code >> 16), PeriodNS: periodNS,
	}
	if s.Algo == Warmup {
		s.ZoneMin, s.Cold = 0, s.ZoneMin
	}
	return s
}

// Params are what a state is scaled by when they change.
type Params struct {
	Count int64 // 1..MaxCount in each period
	Burst int64 // gcra: the most at one instant; warmup: how long that takes, in ms
}

// The bounds of a literal. 10^7 a second is one call in 100 ns, which leaves a state in whole nanoseconds exact to 1 %; real
// limits are orders of magnitude below that.
const (
	MaxCount     = 1<<31 - 1
	MaxPerSecond = 10_000_000
	MaxBuckets   = 128
	MaxCold      = 100_00
	MinPeriodNS  = 1_000
	MaxPeriodNS  = 366 * 86_400 * nsPerSecond
	MaxWarmupNS  = 24 * 86_400 * nsPerSecond // as a number of ms has to fit Params.Burst
)

// IsBucket reports that a limit is nothing but its Bucket: State.A is the TAT, and all that there is to remember.
func (l *Limit) IsBucket() bool { return l.Algo == GCRA && l.BlockNS == 0 }

// Bucket is what a limit decides by that IsBucket: a Take of cost n is a Throttle of quantity n.
func (l *Limit) Bucket() Bucket { return l.gcra }

// Capacity is the most that passes at one instant. For warmup it is the count, though there a call of any cost passes.
func (l *Limit) Capacity() int64 {
	if l.Algo == GCRA {
		return l.Burst
	}
	return l.Count
}

// prepare computes the bucket of a GCRA, or the interval of a warmup. It rounds the interval up, so that no more than the rate passes. It returns false when
// burst × interval does not fit int64 nanoseconds.
func (l *Limit) prepare() bool {
	if l.Algo != GCRA && l.Algo != Warmup {
		return true
	}
	interval := (l.PeriodNS + l.Count - 1) / l.Count
	if l.Algo == Warmup {
		l.gcra = Bucket{capacity: 1, intervalNS: interval, toleranceNS: interval}
		return true
	}
	high, tolerance := bits.Mul64(uint64(interval), uint64(l.Burst))
	if high != 0 || int64(tolerance) < 0 {
		return false
	}
	l.gcra = Bucket{capacity: l.Burst, intervalNS: interval, toleranceNS: int64(tolerance)}
	return true
}

// Restore returns the limit of a shape and parameters, without block and shadow. Both must come from a parsed Limit.
func Restore(s Shape, p Params) Limit {
	l := Limit{Shape: s, Params: p}
	l.prepare()
	return l
}
