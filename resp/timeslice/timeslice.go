// Package timeslice says when a session has been served for so long that others come first.
//
//	var slice timeslice.Slice
//	slice.Begin(clock, nowNS, roundNS)
//	for !slice.IsOver() {
//		slice.Did(args, bytes) // of a command
//	}
package timeslice

// NS bounds how long the connections that are served in one round of an event loop keep it: after that, each that is left in the round
// is served for one look at the clock, and the rest of its pipeline waits for the next round. 5 ms are 20,000 decisions.
const NS = 5_000_000

// LookEvery is how much a session does between two looks at the clock: 64 decisions, or as many arguments of other commands, of which each
// may take 2 µs. A look takes 40 ns, as much as 0.3 decisions.
const LookEvery = 64

// sliceBytes is how many bytes of commands and replies count as much as an argument.
const sliceBytes = 256

// Slice is the time that a session has until others are served.
type Slice struct {
	clock   func() int64
	untilNS int64
	work    int // since the last look
}

// Begin begins the slice. roundNS is when the round of its event loop began. 0: it has none, and the slice begins at nowNS.
func (l *Slice) Begin(clock func() int64, nowNS, roundNS int64) {
	if roundNS > 0 {
		nowNS = roundNS
	}
	*l = Slice{clock: clock, untilNS: nowNS + NS}
}

// Did notes work.
func (l *Slice) Did(args, bytes int) { l.work += args + bytes/sliceBytes }

// ReadClock reads the clock for the slice, too.
func (l *Slice) ReadClock() (nowNS int64) {
	nowNS, l.work = l.clock(), 0
	if nowNS > l.untilNS {
		l.work = LookEvery
	}
	return nowNS
}

// Ended looks at the clock, and reports whether others are to be served now.
func (l *Slice) Ended() bool { return l.ReadClock() > l.untilNS }

// IsOver is Ended, if there was enough work since the last look.
func (l *Slice) IsOver() bool { return l.work >= LookEvery && l.Ended() }
