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
	untilNS int64
	work    int // since the last look
}

// did notes work.
func (l *slice) did(args, bytes int) { l.work += args + bytes/sliceBytes }

// beginSlice begins the session's turn in a round.
func (s *Session) beginSlice(nowNS int64) {
	if roundNS := s.tr.RoundNS(); roundNS > 0 {
		nowNS = roundNS
	}
	s.scratch.slice = slice{untilNS: nowNS + sliceNS}
}

// readClock reads the clock for the slice, too.
func (s *Session) readClock() (nowNS int64) {
	nowNS, s.scratch.slice.work = s.srv.clock(), 0
	if nowNS > s.scratch.slice.untilNS {
		s.scratch.slice.work = lookEvery
	}
	return nowNS
}

// sliceIsOver looks at the clock if there was enough work since the last look.
func (s *Session) sliceIsOver() bool {
	return s.scratch.slice.work >= lookEvery && s.readClock() > s.scratch.slice.untilNS
}
