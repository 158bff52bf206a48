package cell

// Limit is a limit as a caller writes it: 100/1m, 5/1s,algo=log, 10000/month,tz=+08:00. Make one with ParseLimit; two of
// the same text are equal. The zero value is no limit.
type Limit struct {
	Shape
	Params
	BlockNS     int64 // how long a denied key stays denied; 0: as long as its state says
	BlockAtFull bool  // the block begins with the call that takes the last of the limit, and not with one that is denied
	Shadow      bool  // evaluated, never limits

	beyond bool // see Counting

	by       algorithm // Decide finds it here 1 ns faster than by the shape
	capacity int64
	bucket   Bucket // by which gcra and warmup decide; its capacity is what remaining is out of
}

// Shape tells apart the states of the limits under one key: limits of the same shape share a state. A limit that changes in anything else
// keeps its state.
type Shape struct {
	Algo     Algo
	Unit     unit
	Clock    bool   // window: begins at multiples of its length since 1970, in its zone
	Buckets  uint8  // slide: sub-windows that are summed, 2..128; 0: two windows, the one before weighted
	Zone     zone   // of the clock or the calendar
	From     uint16 // of the calendar: when in a day, in a week from Monday or in a month its window begins, in minutes
	Cold     int16  // warmup: how many times longer the interval is when the limit is cold, in hundredths, 101..maxCold
	Leases   bool   // the companion of such a state, which holds the leases of what was taken from it
	PeriodNS int64  // of a window of the calendar: the shortest while clocks do not change
	Name     Name
}

// Bare is the algorithm, the period and the name of a shape.
func (s Shape) Bare() Shape {
	return Shape{Algo: s.Algo, Unit: s.Unit, PeriodNS: s.PeriodNS, Name: s.Name}
}

// Alike reports that two shapes have the same algorithm, period and name. A policy's state is carried over to a limit that is alike.
func (s Shape) Alike(as Shape) bool { return s.Bare() == as.Bare() }

// Aligned reports that windows follow the clock or the calendar. Such a limit decides by wall time. Leases do not: they last as long as
// they were granted for.
func (s *Shape) Aligned() bool { return s.byWall() && !s.Leases }

func (s *Shape) byWall() bool { return s.Clock || s.Unit != noUnit }

// HoldsLeases reports that a state of this shape holds leases: see State.Leases.
func (s *Shape) HoldsLeases() bool { return s.can(ofLeases) }

// HasBurst reports that a limit of this shape has a burst.
func (s *Shape) HasBurst() bool { return algorithms[s.Algo].can&ofBursts != 0 }

// HasRing reports that a state of this shape has a ring. That of a window or of a slide without buckets has one only for large numbers, and
// it is never changed but replaced.
func (s *Shape) HasRing() bool { return s.can(hasRing) }

// KeepsCalls reports that a state of this shape holds the calls themselves, up to Count of them. It may be written in parts: see Parts.
func (s *Shape) KeepsCalls() bool { return s.can(ofCalls) }

// CodeOfLeases is the bit of a Code for Leases.
const CodeOfLeases = 1 << 7

// Code and Span pack a shape without its Name, for stores with many states. ShapeOf unpacks them. The period of the calendar is its
// unit's, so that there is room for From beside it.
func (s *Shape) Code() uint32 {
	flags := uint32(0)
	if s.Clock {
		flags = 1 << 6
	}
	if s.Leases {
		flags |= CodeOfLeases
	}
	return uint32(s.Algo) | uint32(s.Unit)<<3 | flags | uint32(s.Buckets)<<8 | uint32(uint16(s.Zone)|uint16(s.Cold))<<16 // one of them is 0
}

// Span is the period in ns, and what a Code has no room for.
func (s *Shape) Span() int64 { return s.PeriodNS + int64(s.From) }

// ShapeOf is the shape of a Code and a Span.
func ShapeOf(code uint32, span int64) Shape {
	s := Shape{
		Algo: Algo(code & 7), Unit: unit(code >> 3 & 7), Clock: code>>6&1 != 0, Leases: code&CodeOfLeases != 0,
		Buckets: uint8(code >> 8), PeriodNS: span,
	}
	if s.Unit != noUnit {
		s.PeriodNS = s.Unit.shortestNS()
		s.From = uint16(span - s.PeriodNS)
	}
	if s.byWall() {
		s.Zone = zone(code >> 16)
	} else {
		s.Cold = int16(code >> 16)
	}
	return s
}

// Params may change: Carry keeps what is used, as a number.
type Params struct {
	Count int64 // 1 or more in each period: up to MaxCost for window and slide, to maxCount for others
	Burst int64 // gcra: the most at one instant; warmup: how long that takes, in ms
}

// IsBucket reports that a limit is only its Bucket: State.A is the TAT, and nothing else is remembered.
func (l *Limit) IsBucket() bool { return l.can(bucketOnly) && l.BlockNS == 0 }

// Bookable reports that a call can be booked ahead of its moment. So each of many who wait can be told how long.
func (l *Limit) Bookable() bool { return l.can(bookable) }

// Additive reports that booked costs add up: a call behind several others waits as long as behind one call of their total cost.
func (l *Limit) Additive() bool { return l.can(additive) }

// Bucket is the bucket that decides for a limit that IsBucket: a Take of cost n is a Throttle of quantity n.
func (l *Limit) Bucket() Bucket { return l.bucket }

// Capacity is the most that passes at one instant. For warmup it is the count, although a call of any cost passes.
func (l *Limit) Capacity() int64 { return l.capacity }

// prepare computes the capacity and the bucket. A companion gets those of the limit beside it.
func (l *Limit) prepare() (ok bool) {
	base := l.Shape
	base.Leases = false
	l.by = base.kind().algorithm
	l.capacity, l.bucket, ok = l.by.prepare(base, l.Params)
	return ok
}

// intervalNS is what a call costs at this rate, rounded up, so that no more than the rate passes.
func (p Params) intervalNS(s Shape) int64 { return (s.PeriodNS + p.Count - 1) / p.Count }

// BlocksDenied reports that a denied call blocks its key.
func (l *Limit) BlocksDenied() bool { return l.BlockNS > 0 && !l.BlockAtFull }

// LimitOf returns the limit of a shape and parameters, without block and shadow. Both must come from a parsed Limit.
func LimitOf(s Shape, p Params) Limit {
	l := Limit{Shape: s, Params: p}
	l.prepare()
	return l
}

// Counting is the limit for a caller who counts by Force, and compares with the count himself. Its Decisions go on to MaxCost: Limit less
// Remaining is what was used, also beyond the count. It is for window, slide, log and conc.
func (l *Limit) Counting() Limit {
	wide := *l
	wide.beyond, wide.capacity = true, MaxCost
	return wide
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
	if share.prepare(); l.beyond {
		share.capacity = l.capacity / n
	}
	return share
}
