package remote

import (
	"slices"
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
	f := Facts{Name: s.link.name, Kind: "standalone", Away: s.Away(), WaitingBytes: s.queues.bytes.Load()}
	switch {
	case s.cluster.Load():
		f.Kind = "cluster"
		if n, known := s.coverage.lacks(); known {
			f.SlotsWithoutMaster, f.SlotsKnown = n, true
		}
	case s.link.address.Master != "":
		f.Kind = "sentinel"
	}
	f.Mode, f.Since = s.Mode()
	l := &s.link.nodes
	l.mu.Lock()
	defer l.mu.Unlock()
	var versions []string
	for _, n := range l.all {
		versions = append(versions, n.version)
	}
	slices.Sort(versions)
	f.Version = strings.Join(slices.Compact(versions), ", ")
	if n := l.last; n != nil {
		f.Eviction, f.Persistence, f.ClockKnown, f.ClockAhead = n.eviction, n.persistence, n.clockKnown, n.clock
	}
	return f
}
