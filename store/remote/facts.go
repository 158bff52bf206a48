package remote

import (
	"celld/store"

	"strings"
)

// Facts tells what is known of the engine. It sends nothing.
func (s *Store) Facts() store.Facts {
	e := s.link.Engine()
	f := store.Facts{
		Name: s.link.Name(), Kind: s.link.Kind(), Away: s.Away(), Version: strings.Join(e.Versions, ", "),
		Eviction: e.Eviction, Persistence: e.Persistence, ClockKnown: e.ClockKnown, ClockAhead: e.Clock, WaitingBytes: s.queues.Bytes(),
		MaxWaiting: s.options.MaxWaiting, Counts: s.stats.counts(),
	}
	f.Mode, f.Since = s.Mode()
	if n, known := s.link.Uncovered(); known {
		f.SlotsWithoutMaster, f.SlotsKnown = n, true
	}
	return f
}
