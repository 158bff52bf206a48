package store

import "time"

// Facts are what is known of an engine. Unknown facts are zero, and so are all facts of a store in the process.
type Facts struct {
	Name  string    // its address, without a password
	Kind  string    // standalone, sentinel or cluster
	Mode  string    // what decides: engine, or the failure mode while a part of the engine does not answer
	Since time.Time // of Mode
	Away  error     // why it does not answer; nil: it does

	SlotsKnown         bool // a Cluster's node tells SlotsWithoutMaster
	SlotsWithoutMaster int  // of a Cluster: hash slots whose keys nobody serves

	Version     string // of all nodes, separated by commas
	Eviction    string // of the node that celld looked at last, as are the next three
	Persistence string
	ClockKnown  bool
	ClockAhead  time.Duration // of this machine's clock

	WaitingBytes int64 // of calls that wait for the engine
	MaxWaiting   int64 // the bound on these
	Counts       Counts
}
