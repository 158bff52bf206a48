package enginetest

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"celld/resp/wire"
	"celld/store/remote/link"
)

// command is a row of the table.
type command struct {
	name  string
	arity int // words, the name included; negative: at least
	flags flags
	keys  keys
	run   func(*call)
}

type flags int

const (
	reads        flags = 1 << iota
	writes             // a replica refuses it, and a master passes it on
	grows              // takes memory
	noScript           // not for scripts
	noAuth             // before AUTH
	whileLoading       // its data
	ofSentinel
)

// keys says where a command has its keys.
type keys int

const (
	noKeys keys = iota
	oneKey      // the second word
	allKeys
	countedKeys // EVAL's
)

// commandTable returns all commands, by their names in lower case.
func commandTable() map[string]*command {
	table := make(map[string]*command)
	for _, row := range slices.Concat(
		keyCommands(), valueCommands(), scriptCommands(), connectionCommands(), serverCommands(), fleetCommands(),
	) {
		table[row.name] = &row
	}
	return table
}

// call is a command that a node runs.
type call struct {
	node    *Node
	client  *client // nil: a replica or a file repeats it
	db      *keyspace
	dbIndex int
	command *command
	args    [][]byte
	nowNS   int64
	resp3   bool
	writes  bool // it may remove what is over
	out     []byte
}

func (x *call) nowMs() int64         { return x.nowNS / 1e6 }
func (x *call) arg(i int) string     { return string(x.args[i]) }
func (x *call) fail(text string)     { x.out = wire.AppendError(x.out, text) }
func (x *call) ok()                  { x.out = wire.AppendStatus(x.out, "OK") }
func (x *call) int(n int64)          { x.out = wire.AppendInt(x.out, n) }
func (x *call) bulk(text string)     { x.out = wire.AppendString(x.out, text) }
func (x *call) null()                { x.out = wire.AppendNull(x.out, x.resp3) }
func (x *call) array(n int)          { x.out = wire.AppendArray(x.out, n) }
func (x *call) pairs(n int)          { x.out = wire.AppendMap(x.out, n, x.resp3) }
func (x *call) verbatim(text string) { x.out = wire.AppendVerbatim(x.out, "txt", text, x.resp3) }
func (x *call) option(i int) string  { return strings.ToUpper(string(x.args[i])) }
func (x *call) wrongArity(name string) {
	x.fail("ERR wrong number of arguments for '" + name + "' command")
}

func (x *call) yes(is bool) {
	if is {
		x.int(1)
	} else {
		x.int(0)
	}
}

// unsupported is for what this package does not simulate.
func (x *call) unsupported(reply string) {
	x.node.engine.unknown = append(x.node.engine.unknown, fmt.Sprintf("%.100q", x.args))
	x.fail(reply)
}

// integer reads a number as Redis does: no sign +, no spaces, no leading zeros.
func integer(text []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(text)
}

const (
	errInteger   = "ERR value is not an integer or out of range"
	errSyntax    = "ERR syntax error"
	errType      = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNoCluster = "ERR This instance has cluster support disabled"
	errNoScript  = "NOSCRIPT No matching script. Please use EVAL."
	errOOM       = "OOM command not allowed when used memory > 'maxmemory'."
	errReplica   = "READONLY You can't write against a read only replica."
)

// lookup finds the command of a call, and its keys. The error is Redis's; "": there is none.
func (x *call) lookup() (found [][]byte, wrong string) {
	e, name := x.node.engine, strings.ToLower(x.arg(0))
	x.command = e.commands[name]
	if x.command == nil || x.node.sentinel && x.command.flags&ofSentinel == 0 {
		var quoted strings.Builder
		for _, arg := range x.args[1:] {
			if quoted.Len() >= 128 {
				break
			}
			fmt.Fprintf(&quoted, "'%.*s' ", 128-quoted.Len(), arg)
		}
		e.unknown = append(e.unknown, fmt.Sprintf("%.100q", x.args))
		return nil, fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: %s", x.arg(0), quoted.String())
	}
	if n := x.command.arity; n > 0 && len(x.args) != n || len(x.args) < -n {
		return nil, "ERR wrong number of arguments for '" + name + "' command"
	}
	switch x.command.keys {
	case oneKey:
		return x.args[1:2], ""
	case allKeys:
		return x.args[1:], ""
	case countedKeys:
		if name == "evalsha" && len(x.args[1]) != 2*sha1.Size {
			return nil, errNoScript
		}
		n, ok := integer(x.args[2])
		switch {
		case !ok:
			return nil, errInteger
		case n > int64(len(x.args)-3):
			return nil, "ERR Number of keys can't be greater than number of args"
		case n < 0:
			return nil, "ERR Number of keys can't be negative"
		}
		return x.args[3 : 3+n], ""
	}
	return nil, ""
}

// perform checks a client's command in the order in which Redis does, and runs it. It reports whether that was a success, and used keys.
func (n *Node) perform(x *call) (applied bool) {
	found, wrong := x.lookup()
	c := x.client
	asking := c.asking
	c.asking = false
	if wrong == "" && !c.authed && x.command.flags&noAuth == 0 {
		wrong = "NOAUTH Authentication required."
	}
	if wrong == "" {
		wrong = n.redirect(x, found, asking)
	}
	is := func(f flags) bool { return x.command.flags&f != 0 }
	if wrong == "" {
		switch full := n.makeRoom(x.nowMs()); {
		case full && is(grows):
			wrong = errOOM
		case n.refusesWrites() && is(writes):
			wrong = errReplica
		case n.refuses != "" && !is(n.allows):
			wrong = n.refuses
		}
	}
	if wrong != "" {
		x.fail(wrong)
		return false
	}
	x.execute()
	return len(found) > 0 && x.out[0] != '-'
}

func (n *Node) refusesWrites() bool { return n.readOnly || !n.IsMaster() }

// execute runs a command, and passes it on.
func (x *call) execute() {
	x.writes = x.command.flags&writes != 0 && !x.node.refusesWrites()
	if x.command.run(x); x.writes {
		args := append([][]byte{[]byte(x.command.name)}, x.args[1:]...)
		x.node.wrote(write{nowNS: x.nowNS, db: x.dbIndex, args: args})
	}
}

// makeRoom evicts keys while the memory is full, if it may, and reports whether it is full still.
func (n *Node) makeRoom(nowMs int64) (full bool) {
	most := n.engine.options.MaxMemory
	if n.full || most == 0 || n.refusesWrites() || n.data.used() <= most {
		return n.full
	}
	for i := range n.data {
		n.data[i].purge(nowMs)
	}
	for n.data.used() > most {
		if !n.engine.options.Evicts || !n.evict() {
			return true
		}
	}
	return false
}

// evict removes any key.
func (n *Node) evict() bool {
	for i := range n.data {
		if db := &n.data[i]; len(db.names) > 0 {
			name := db.names[n.engine.options.Rand.IntN(len(db.names))]
			db.remove(name)
			n.wrote(write{db: i, args: [][]byte{[]byte("del"), []byte(name)}})
			return true
		}
	}
	return false
}

func slotOf(key []byte) int { return int(link.HashSlot(string(key))) }
