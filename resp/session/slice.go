package session

// sliceNS bounds how long the connections that are served in one round of an event loop keep it: after that, each that is left in the round
// is served for one look at the clock, and the rest of its pipeline waits for the next round. 5 ms are 20,000 decisions.
const sliceNS = 5_000_000

// lookEvery is how much a session does between two looks at the clock: 64 decisions, or as many arguments of other commands, of which each
// may take 2 µs. A look takes 40 ns, as much as 0.3 decisions.
const lookEvery = 64

// sliceBytes is how many bytes of commands and replies count as much as an argument.
const sliceBytes = 256

// slice is the time that a session has until others are served.
//
//	var l slice
//	l.Begin(clock, nowNS, roundNS)
//	for !l.IsOver() {
//		l.Did(args, bytes) // of a command
//	}
type slice struct {
	clock   func() int64
	untilNS int64
	work    int // since the last look
}

// Begin begins the slice. roundNS is when the round of its event loop began. 0: it has none, and the slice begins at nowNS.
func (l *slice) Begin(clock func() int64, nowNS, roundNS int64) {
	if roundNS > 0 {
		nowNS = roundNS
	}
	*l = slice{clock: clock, untilNS: nowNS + sliceNS}
}

// Did notes work.
func (l *slice) Did(args, bytes int) { l.work += args + bytes/sliceBytes }

// ReadClock reads the clock for the slice, too.
func (l *slice) ReadClock() (nowNS int64) {
	nowNS, l.work = l.clock(), 0
	if nowNS > l.untilNS {
		l.work = lookEvery
	}
	return nowNS
}

// Ended looks at the clock, and reports whether others are to be served now.
func (l *slice) Ended() bool { return l.ReadClock() > l.untilNS }

// IsOver is Ended, if there was enough work since the last look.
func (l *slice) IsOver() bool { return l.work >= lookEvery && l.Ended() }
