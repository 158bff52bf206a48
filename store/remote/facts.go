package remote

import (
	"strings"

	"celld/store"
)

// Facts tells what is known of the engine. It sends nothing.
func (s *Store) Facts() store.Facts {
	e, n := s.link.Engine(), &s.stats
	f := store.Facts{
		Name: s.link.Name(), Kind: s.link.Kind(), Away: s.Away(), Version: strings.Join(e.Versions, ", "),
		Eviction: e.Eviction, Persistence: e.Persistence, ClockKnown: e.ClockKnown, ClockAhead: e.Clock, WaitingBytes: s.queues.Bytes(),
		MaxWaiting: s.options.MaxWaiting, Counts: store.Counts{
			Calls: n.Requests.Load(), Failures: n.Failures.Load(), Timeouts: n.Timeouts.Load(), Conflicts: n.Conflicts.Load(),
			DenialsRemembered: n.DenialsAnswered.Load(), DecidedAhead: n.Ahead.Decisions.Load(), UnitsTaken: n.Ahead.Taken.Load(),
			UnitsGivenBack: n.Ahead.GivenBack.Load(), UnitsEnded: n.Ahead.Ended.Load(),
			DecidedWithout: n.DecidedWithout.Load(), Refused: n.Refused.Load(),
		},
	}
	f.Mode, f.Since = s.Mode()
	if n, known := s.link.Uncovered(); known {
		f.SlotsWithoutMaster, f.SlotsKnown = n, true
	}
	return f
}
