package resp

// sliceNS bounds how long the connections that are served in one round of an event loop keep it: after that, each that is left in the round
// is served for one look at the clock, and the rest of its pipeline waits for its next turn. 5 ms are 20,000 decisions.
const sliceNS = 5_000_000

// lookEvery is how much a session does between two looks at the clock: 64 decisions, or as many arguments of other commands, of which each
// may take 2 µs. A look takes 40 ns, as much as 0.3 decisions.
const lookEvery = 64

// sliceBytes is how many bytes of commands and replies count as much as an argument.
const sliceBytes = 256

// slice is the time that a session has until others are served.
type slice struct {
	clock   func() int64
	untilNS int64
	work    int // since the last look
}

// begin begins the session's turn. roundNS is when the round of its event loop began; 0: it has none, and the turn is the round.
func (l *slice) begin(clock func() int64, nowNS, roundNS int64) {
	if roundNS > 0 {
		nowNS = roundNS
	}
	*l = slice{clock: clock, untilNS: nowNS + sliceNS}
}

// did notes work.
func (l *slice) did(args, bytes int) { l.work += args + bytes/sliceBytes }

// readClock reads the clock for the slice, too.
func (l *slice) readClock() (nowNS int64) {
	nowNS, l.work = l.clock(), 0
	if nowNS > l.untilNS {
		l.work = lookEvery
	}
	return nowNS
}

// ended looks at the clock, and reports whether others are to be served now.
func (l *slice) ended() bool { return l.readClock() > l.untilNS }

// isOver is ended, if there was enough work since the last look.
func (l *slice) isOver() bool { return l.work >= lookEvery && l.ended() }
