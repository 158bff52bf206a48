package resp

import (
	"sync/atomic"

	"celld/resp/client"
	"celld/resp/command"
)

// gate says why the commands of a pipeline must be looked at one by one. Where neither the session's gate word nor the server's
// has a bit, calls that are alike are decided in batches, past dispatch and call: nobody then watches, queues, refuses or times
// single commands, or holds their replies back.
//
// Each bit has one owner, who sets and clears it where that changes of which it tells. Most bits are that state themselves;
// the others are set by the one function that changes it.
type gate uint32

// Bits of a session's word, which only its own goroutine uses.
const (
	gateAuth     gate = 1 << iota // the peer has not authenticated itself
	gateMulti                     // MULTI is open: commands are queued
	gateReplyOff                  // CLIENT REPLY OFF
	gateSkipNext                  // CLIENT REPLY SKIP: the next command has no reply
	gateSkip                      // nor has the one that runs
	gateCaching                   // CLIENT CACHING holds for the next command or transaction
	gateRights                    // the user may not do everything: batches are cut before a call that it may not

	// Bits of the server's word.

	gateTimed     // the slow log asks for every command's time
	gateMonitored // somebody watches by MONITOR
	gateLoading   // what is on the disk has not been read
	gateRefusing  // writes are refused, as the disk does not take them
	gateBusy      // a script takes too long: the commands of others are refused
)

func (g gate) has(bits gate) bool { return g&bits != 0 }

// silent says that the running command gets no reply (CLIENT REPLY).
func (g gate) silent() bool { return g.has(gateReplyOff | gateSkip) }

// tracked reports whether a client that tracks may cache what a command has answered. A script may have read any of its keys.
func (g gate) tracked(t client.Tracking, row *command.Row) bool {
	if t == 0 || row.Flags&command.Readonly == 0 && row.Group != "scripting" {
		return false
	}
	return t&client.OptsIn == 0 || g.has(gateCaching)
}

// endCaching ends CLIENT CACHING after a command outside MULTI that is not a CLIENT command.
func (g *gate) endCaching(row *command.Row) {
	if g.has(gateCaching) && !g.has(gateMulti) && (row == nil || row.Parent == nil || row.Parent.Name != "client") {
		g.set(gateCaching, false)
	}
}

func (g *gate) set(bit gate, on bool) {
	*g &^= bit
	if on {
		*g |= bit
	}
}

// serverGate is the gate word of all sessions. Any goroutine may change it.
type serverGate struct{ word atomic.Uint32 }

func (g *serverGate) Load() gate         { return gate(g.word.Load()) }
func (g *serverGate) has(bits gate) bool { return g.Load().has(bits) }

func (g *serverGate) set(bit gate, on bool) {
	if on {
		g.word.Or(uint32(bit))
	} else {
		g.word.And(^uint32(bit))
	}
}
