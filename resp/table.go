package resp

import (
	"bytes"
	"fmt"
	"strings"

	"celld/resp/acl"
)

// shortList is command.most of those that go through their arguments at once: 1000 take a millisecond.
const shortList = 1000

// command is one row of the command table. COMMAND, COMMAND DOCS, HELP, arity errors and MULTI all derive from it. To add a
// command, add a row and its handler.
type command struct {
	name    string // lower case
	arity   int    // arguments, the name included; -n: n or more
	most    int    // arguments behind the name, where they are names of a list that is short
	many    bool   // it may have more than shortList arguments, as many as any command may have
	flags   flag
	keys    keyRange
	access  access // to its keys
	usage   string // the arguments: word, [optional], a|b, repeated ...; UPPER case is literal
	summary string
	since   string // the first version of Redis that has it; empty for celld's own
	group   string
	cost    string // complexity; empty: O(1)
	run     func(*Session, [][]byte)
	read    func(s *Session, f *form, args [][]byte) (text string) // in place of run, of calls that the limiter decides: or an error
	far     farFunc                                                // in place of run, where an engine keeps the keys: over all of them
	script  int                                                    // the argument that is a script to compile; 0: there is none
	aside   bool                                                   // far runs in memory, too: outside of MULTI the command takes too long for an event loop
	sub     []*command

	parent *command
	acl    *acl.Command
	stats  commandStats
}

// flag is a bit of a row. COMMAND INFO shows those that Redis has, by Redis's names.
type flag uint32

const (
	write flag = 1 << iota
	readonly
	denyOOM
	module
	admin
	noAuth    // may run before AUTH
	fast      // takes a few µs: timed with its batch, unless it has many arguments (big)
	immediate // runs at once inside MULTI
	noMulti   // refused inside MULTI
	skipMonitor
	skipSlowlog
	noScript
	loading   // may run while files are loaded
	allowBusy // may run while another connection's script takes too long
	decides   // asks the limiter
	blocking  // may wait
)

var flagNames = []struct {
	bit  flag
	name string
}{
	{write, "write"}, {readonly, "readonly"}, {denyOOM, "denyoom"}, {module, "module"}, {admin, "admin"}, {noScript, "noscript"}, {blocking, "blocking"},
	{loading, "loading"}, {loading, "stale"}, {skipMonitor, "skip_monitor"}, {skipSlowlog, "skip_slowlog"}, {fast, "fast"}, {noAuth, "no_auth"}, {allowBusy, "allow_busy"}, {noMulti, "no_multi"},
}

// keyRange says which arguments are keys: the first, the last (negative: from the end) and the step (0: there are none). With
// counted, the argument before the first says how many follow.
type keyRange struct {
	first, last, step int
	counted           bool
}

var (
	oneKey       = keyRange{first: 1, last: 1, step: 1}
	twoKeys      = keyRange{first: 1, last: 2, step: 1}
	allKeys      = keyRange{first: 1, last: -1, step: 1}
	countedPairs = keyRange{first: 2, last: -1, step: 2, counted: true}
	scriptKeys   = keyRange{first: 3, last: -1, step: 1, counted: true}
)

func (c *command) fullName() string {
	if c.parent != nil {
		return c.parent.name + "|" + c.name
	}
	return c.name
}

// takesMany says that a command may have as many arguments as any.
func (c *command) takesMany() bool { return c.many || c.keys.last < 0 }

func (c *command) findSub(name []byte) *command {
	for _, sub := range c.sub {
		if len(sub.name) == len(name) && strings.EqualFold(sub.name, string(name)) {
			return sub
		}
	}
	return nil
}

// keysOf returns the keys among a command's arguments.
func (c *command) keysOf(args [][]byte) [][]byte {
	first, last := c.keyBounds(args)
	if last < first {
		return nil
	}
	keys := make([][]byte, 0, 1+(last-first)/c.keys.step)
	for i := first; i <= last; i += c.keys.step {
		keys = append(keys, args[i])
	}
	return keys
}

// keyBounds returns where the first and the last key are, which are keys.step apart. Without a key, last is below first.
func (c *command) keyBounds(args [][]byte) (first, last int) {
	if c.keys.step == 0 {
		return 0, -1
	}
	last = c.keys.last
	if last < 0 {
		last += len(args)
	}
	if c.keys.counted {
		n, ok := parseInt(args[c.keys.first-1])
		if !ok || n < 1 || n > int64((len(args)-c.keys.first)/c.keys.step) {
			return 0, -1
		}
		last = c.keys.first + (int(n)-1)*c.keys.step
	}
	return c.keys.first, min(last, len(args)-1)
}

// maxName is longer than every command's name.
const maxName = 32

// commandTable finds rows by name.
type commandTable struct {
	rows     []*command
	byName   map[string]*command
	throttle *command // the rows that do not need to be looked for
	give     *command
}

func newCommandTable() *commandTable {
	t := &commandTable{rows: commandRows(), byName: map[string]*command{}}
	for _, row := range t.rows {
		t.byName[row.name] = row
		if row.read != nil {
			row.run = func(s *Session, args [][]byte) { decide(s, row, args) }
		}
		if len(row.sub) == 0 {
			continue
		}
		row.sub = append(row.sub, &command{
			name: "help", arity: 2, flags: row.flags & noAuth, summary: "Returns helpful text about the different subcommands.",
			since: row.since, group: row.group, run: func(s *Session, _ [][]byte) { s.replyHelp(row) },
		})
		for _, sub := range row.sub {
			sub.parent = row
		}
	}
	t.throttle, t.give = t.byName["cl.throttle"], t.byName["cl.give"]
	return t
}

// find looks up a name in any case, without allocating.
func (t *commandTable) find(name []byte) *command {
	if len(name) > maxName {
		return nil
	}
	var lower [maxName]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return t.byName[string(lower[:len(name)])]
}

// findFull looks up "client|id" as well as "client".
func (t *commandTable) findFull(name []byte) *command {
	parent, sub, isSub := bytes.Cut(name, []byte{'|'})
	row := t.find(parent)
	if row == nil || !isSub {
		return row
	}
	return row.findSub(sub)
}

// unknownCommand is Redis's error for a name without a row. The start of the arguments helps to find the caller.
func unknownCommand(args [][]byte) string {
	var shown strings.Builder
	for _, arg := range args[1:] {
		room := 128 - shown.Len()
		if room <= 0 {
			break
		}
		fmt.Fprintf(&shown, "'%s' ", arg[:min(len(arg), room)])
	}
	return fmt.Sprintf(errUnknownCommand, args[0], shown.String())
}

// replyHelp answers X HELP by the rows of X's subcommands.
func (s *Session) replyHelp(row *command) {
	lines := []string{upper(row.name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, sub := range row.sub {
		lines = append(lines, strings.TrimSpace(upper(sub.name)+" "+sub.usage), "    "+sub.summary)
	}
	s.replyArray(len(lines))
	for _, line := range lines {
		s.replyStatus(line)
	}
}

func upper(s string) string { return strings.ToUpper(s) }
