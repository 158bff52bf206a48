package cell

// Limit is a limit as a caller writes it: 100/1m, 5/1s,algo=log, 10000/month,tz=+08:00. Make one with ParseLimit; two of
// the same text are equal. The zero value is no limit.
type Limit struct {
	Shape
	Params
	BlockNS int64 // a denied key stays denied that long; 0: not longer than its state says
	Shadow  bool  // evaluated, never limits

	by       algorithm // Decide finds it here 1 ns faster than by the shape
	capacity int64
	bucket   Bucket // by which gcra and warmup decide; its capacity is what remaining is out of
}

// Shape tells the states of literals under one key apart: limits of the same shape share a state. A change of anything else
// keeps the state.
type Shape struct {
	Algo     Algo
	Unit     unit
	Clock    bool  // window: begins at multiples of its length since 1970, in its zone
	Buckets  uint8 // slide: sub-windows that are summed, 2..128; 0: two windows, the one before weighted
	ZoneMin  int16 // minutes east of UTC
	Cold     int16 // warmup: how many times longer the interval is when it is cold, in hundredths, 101..maxCold
	PeriodNS int64 // of a calendar's window the shortest
	Leases   bool  // the companion of such a state: the leases that were taken from it
}

// Aligned reports that the windows are the clock's or the calendar's. Such a limit decides by wall time. Leases do not: they last
// as long as they were told.
func (s *Shape) Aligned() bool { return s.byWall() && !s.Leases }

func (s *Shape) byWall() bool { return s.Clock || s.Unit != noUnit }

// HoldsLeases reports that a state of this shape is one of leases.
func (s *Shape) HoldsLeases() bool { return s.can(ofLeases) }

// HasRing reports that a state of this shape has a ring.
func (s *Shape) HasRing() bool { return s.can(hasRing) }

// KeepsCalls reports that a state of this shape has the calls themselves, up to Count of them. It may be told in parts: see Parts.
func (s *Shape) KeepsCalls() bool { return s.can(ofCalls) }

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
		Algo: Algo(code & 7), Unit: unit(code >> 3 & 7), Clock: code>>6&1 != 0, Leases: code&CodeOfLeases != 0,
		Buckets: uint8(code >> 8), PeriodNS: periodNS,
	}
	if s.byWall() {
		s.ZoneMin = int16(code >> 16)
	} else {
		s.Cold = int16(code >> 16)
	}
	return s
}

// Params are what a state is scaled by when they change.
type Params struct {
	Count int64 // 1..maxCount in each period
	Burst int64 // gcra: the most at one instant; warmup: how long that takes, in ms
}

// IsBucket reports that a limit is nothing but its Bucket: State.A is the TAT, and all that there is to remember.
func (l *Limit) IsBucket() bool { return l.can(bucketOnly) && l.BlockNS == 0 }

// Bookable reports that a call can be booked ahead of its moment, and so that the wait of each of many who wait is known.
func (l *Limit) Bookable() bool { return l.can(bookable) }

// Additive reports that what is booked adds up: whoever comes behind several calls waits as long as behind one of all their costs.
func (l *Limit) Additive() bool { return l.can(additive) }

// Bucket is what a limit decides by that IsBucket: a Take of cost n is a Throttle of quantity n.
func (l *Limit) Bucket() Bucket { return l.bucket }

// Capacity is the most that passes at one instant. For warmup it is the count, though there a call of any cost passes.
func (l *Limit) Capacity() int64 { return l.capacity }

// prepare computes what a limit decides by; for that of a companion, what the limit beside it decides by.
func (l *Limit) prepare() (ok bool) {
	base := l.Shape
	base.Leases = false
	l.by = base.kind().algorithm
	l.capacity, l.bucket, ok = l.by.prepare(base, l.Params)
	return ok
}

// intervalNS is what a call costs at this rate, rounded up, so that no more than the rate passes.
func (p Params) intervalNS(s Shape) int64 { return (s.PeriodNS + p.Count - 1) / p.Count }

// LimitOf returns the limit of a shape and parameters, without block and shadow. Both must come from a parsed Limit.
func LimitOf(s Shape, p Params) Limit {
	l := Limit{Shape: s, Params: p}
	l.prepare()
	return l
}

// Share is the limit for one of n instances that cannot ask each other. Its count, and gcra's burst, are n times smaller, rounded down, and
// 1 at least. Where both are n or more, all shares together allow no more than the whole. There is one exception: each share of a warmup
// allows a call at the same instant. For n below 2, Share returns the whole.
func (l *Limit) Share(n int64) Limit {
	share := *l
	if n < 2 {
		return share
	}
	share.Count = max(l.Count/n, 1)
	share.Params = l.by.share(l.Shape, share.Params, n)
	share.prepare()
	return share
}
