package spec

// Flags are bits of a row. COMMAND INFO shows those that Redis has, by Redis's names.
type Flags uint32

// The flags of rows.
const (
	Write Flags = 1 << iota
	Readonly
	DenyOOM
	Module
	Admin
	NoAuth    // may run before AUTH
	Fast      // takes a few µs: timed with its batch, unless it has many arguments
	Immediate // runs at once inside MULTI
	NoMulti   // refused inside MULTI
	SkipMonitor
	SkipSlowlog
	NoScript
	Loading   // may run while files are loaded
	AllowBusy // may run while another connection's script takes too long
	Decides   // asks the limiter
	Blocking  // may wait
	OfLease   // is about a lease of its key
	Audited   // the log tells who has changed something by it
)

var flagNames = []struct {
	bit  Flags
	name string
}{
	{Write, "write"}, {Readonly, "readonly"}, {DenyOOM, "denyoom"}, {Module, "module"}, {Admin, "admin"}, {NoScript, "noscript"},
	{Blocking, "blocking"}, {Loading, "loading"}, {Loading, "stale"}, {SkipMonitor, "skip_monitor"}, {SkipSlowlog, "skip_slowlog"},
	{Fast, "fast"}, {NoAuth, "no_auth"}, {AllowBusy, "allow_busy"}, {NoMulti, "no_multi"},
}

// Names returns the flags that COMMAND INFO shows.
func (f Flags) Names() []string {
	names := []string{}
	for _, flag := range flagNames {
		if f&flag.bit != 0 {
			names = append(names, flag.name)
		}
	}
	return names
}

// Access says what a command does with its keys.
type Access uint8

// The kinds of access.
const (
	ByFlags Access = iota // reads and writes, or only reads where the row is Readonly
	Looks                 // neither: what the key holds has no part in the reply
	Writes
	Moves   // RENAME: reads and removes the first, writes the second
	Copies  // COPY
	Sets    // SET, which reads only with GET
	Updates // reads and writes, so that what is written follows from what was read
)

// ShortList is Row.Most of those that go through their arguments at once: 1000 take a millisecond.
const ShortList = 1000

// GroupLimit is Row.Group of celld's own commands on limits.
const GroupLimit = "limits"
