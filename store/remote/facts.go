package remote

import (
	"strings"
	"time"
)

// Facts are what is known of the engine. Texts and numbers that are not known are zero.
type Facts struct {
	Name  string    // its address, without a password
	Kind  string    // standalone, sentinel or cluster
	Mode  string    // who decides: engine, or the failure mode while a part of the engine does not answer
	Since time.Time // of Mode
	Away  error     // why it does not answer; nil: it does

	SlotsKnown         bool // a Cluster's node tells the next
	SlotsWithoutMaster int  // of a Cluster: slots whose keys nobody serves

	Version     string // of all nodes, separated by commas
	Eviction    string // of the node that celld looked at last, as the next three
	Persistence string
	ClockKnown  bool
	ClockAhead  time.Duration // of this machine's clock

	WaitingBytes int64 // of calls that wait for the engine
}

// Facts reads them. It asks nobody.
func (s *Store) Facts() Facts {
	e := s.link.Engine()
	f := Facts{
		Name: s.link.Name(), Kind: s.link.Kind(), Away: s.Away(), Version: strings.Join(e.Versions, ", "),
		Eviction: e.Eviction, Persistence: e.Persistence, ClockKnown: e.ClockKnown, ClockAhead: e.Clock, WaitingBytes: s.queues.bytes.Load(),
	}
	f.Mode, f.Since = s.Mode()
	if n, known := s.link.Uncovered(); known {
		f.SlotsWithoutMaster, f.SlotsKnown = n, true
	}
	return f
}
