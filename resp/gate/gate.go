// Package gate says why the commands of a pipeline must be looked at one by one. It is a slow-path mask: a pipeline passes the gate into a
// batch only while no bit is set. It knows no sessions.
//
//	var session gate.Word   // of one session
//	var server gate.Server  // of all
//	session.Set(gate.Multi, true)
//	if session|server.Load() == 0 {
//		// calls that are alike are decided in batches
//	}
package gate

import (
	"sync/atomic"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/spec"
)

// Word says why the commands of a pipeline must be looked at one by one. Where neither the session's gate word nor the server's
// has a bit, calls that are alike are decided in batches, past dispatch and call: then nothing watches, queues, refuses or times
// single commands, or holds their replies back.
//
// Each bit has one owner, which sets and clears it when the state behind it changes. Most bits are that state themselves.
// One function sets each of the others.
type Word uint32

// Bits of a session's word, which only its own goroutine uses.
const (
	Auth     Word = 1 << iota // the peer has not authenticated itself
	Multi                     // MULTI is open: commands are queued
	ReplyOff                  // CLIENT REPLY OFF
	SkipNext                  // CLIENT REPLY SKIP: the next command has no reply
	Skip                      // the command that runs has no reply
	Caching                   // CLIENT CACHING holds for the next command or transaction
	Rights                    // the user may not do everything: batches are cut before a call that it may not

	// Bits of the server's word.

	Timed     // the slow log asks for every command's time
	Monitored // somebody watches by MONITOR
	Loading   // what is on the disk has not been read
	Refusing  // writes are refused, as the disk does not take them
	Busy      // a script takes too long: the commands of others are refused
)

func (g Word) Has(bits Word) bool { return g&bits != 0 }

// Silent says that the running command gets no reply (CLIENT REPLY).
func (g Word) Silent() bool { return g.Has(ReplyOff | Skip) }

// Tracked reports whether a client that tracks may cache what a command has answered. A script may have read any of its keys.
func (g Word) Tracked(t client.Tracking, row *command.Row) bool {
	if t == 0 || row.Flags&spec.Readonly == 0 && row.Group != "scripting" {
		return false
	}
	return t&client.OptsIn == 0 || g.Has(Caching)
}

// EndCaching ends CLIENT CACHING after a command outside MULTI that is not a CLIENT command.
func (g *Word) EndCaching(row *command.Row) {
	if g.Has(Caching) && !g.Has(Multi) && (row == nil || row.Parent == nil || row.Parent.Name != "client") {
		g.Set(Caching, false)
	}
}

func (g *Word) Set(bit Word, on bool) {
	*g &^= bit
	if on {
		*g |= bit
	}
}

// Server is the gate word of all sessions. Any goroutine may change it.
type Server struct{ word atomic.Uint32 }

func (g *Server) Load() Word         { return Word(g.word.Load()) }
func (g *Server) Has(bits Word) bool { return g.Load().Has(bits) }

func (g *Server) Set(bit Word, on bool) {
	if on {
		g.word.Or(uint32(bit))
	} else {
		g.word.And(^uint32(bit))
	}
}
