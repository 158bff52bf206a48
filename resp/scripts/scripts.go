// Package scripts is what sessions ask of an engine that runs scripts, and what it asks of them. Package script has the engine.
//
//	s, err := engine.Load(text)
//	engine.Run(s, host, keys, args)
//	out = engine.AppendReply(out, resp3)
package scripts

// Engine compiles, keeps and runs scripts. Its methods are for one goroutine at a time, except Compile.
type Engine interface {
	// Load compiles a script and keeps it, if it is not kept yet. The error is the reply.
	Load(text []byte) (*Script, error)
	Knows(text []byte) bool // Load need not compile it

	// Compile is the part of Load that takes long. keep keeps the script.
	Compile(text []byte) (keep func() error)

	Get(sha string) (*Script, bool) // in upper or lower case. It counts as a use of the script
	Has(sha string) bool            // does not
	Kept() (scripts, bytes int)     // the bytes by estimate
	Flush()

	// Run runs a script. AppendReply then gives its reply, once, and PassedOn says whether that is an error of a command that the script
	// has called: it is counted then.
	Run(s *Script, h Host, keys, args [][]byte)
	AppendReply(out []byte, resp3 bool) []byte
	PassedOn() bool
}

// Script is a compiled script. Only the Engine that compiled it can run it.
type Script struct {
	SHA      string // in lower case
	ReadOnly bool   // its first line says flags=no-writes
	Code     any    // the Engine's own
}

// Host runs the commands of a script.
type Host interface {
	// Tick returns an error when the script is to end.
	Tick() error
	// NowNS is a clock in nanoseconds.
	NowNS() int64
	// Call runs a command and returns its reply as RESP. The arguments are valid during the call, the reply until the next one.
	Call(args [][]byte) (reply []byte)
	// Log is redis.log: level 0 is debug, 3 is a warning.
	Log(level int, text string)
	// SetProtocol sets the protocol of Call's replies: 2 or 3.
	SetProtocol(version int)
	// OverOutput says whether a reply of so many bytes is too long to be sent. Then no more is appended.
	OverOutput(bytes int) bool
}
