package stats

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
)

// Redis's limits for what an entry keeps of its command.
const (
	mostArgs = 32
	mostArg  = 128
)

// Slowlog keeps the last commands that took long, for SLOWLOG. Any goroutine may use it.
type Slowlog struct {
	most func() int64

	mu      sync.Mutex
	nextID  int64
	entries []SlowEntry // oldest first
}

// SlowEntry is a command that took long.
type SlowEntry struct {
	ID    int64 // from Slowlog.Add
	UnixS int64
	US    int64    // µs that it took
	Args  []string // from TrimArgs
	Addr  string   // of its client
	Name  string   // of its client
}

// NewSlowlog returns a log of at most so many entries.
func NewSlowlog(most func() int64) *Slowlog { return &Slowlog{most: most} }

// Add adds an entry, and drops the oldest where there are too many.
func (l *Slowlog) Add(e SlowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	if extra := len(l.entries) - int(l.most()); extra > 0 {
		l.entries = l.entries[extra:]
	}
}

// Last returns the n newest entries, the newest first; all of them if n is negative.
func (l *Slowlog) Last(n int64) []SlowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > int64(len(l.entries)) {
		n = int64(len(l.entries))
	}
	newest := slices.Clone(l.entries[int64(len(l.entries))-n:])
	slices.Reverse(newest)
	return newest
}

// Reset forgets all entries.
func (l *Slowlog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// TrimArgs is what an entry keeps of a command of n arguments.
func TrimArgs(n int, args iter.Seq2[int, []byte]) []string {
	var kept []string
	for i, arg := range args {
		if i == mostArgs-1 && n > mostArgs {
			return append(kept, fmt.Sprintf("... (%d more arguments)", n-i))
		}
		if len(arg) > mostArg {
			kept = append(kept, fmt.Sprintf("%s... (%d more bytes)", arg[:mostArg], len(arg)-mostArg))
		} else {
			kept = append(kept, string(arg))
		}
	}
	return kept
}

// ErrSlowlogCount is the error of SLOWLOG GET with a count below -1, which is Redis's.
const ErrSlowlogCount = "ERR count should be greater than or equal to -1"

// Rows are SLOWLOG's subcommands.
func (l *Slowlog) Rows() []*command.Row {
	return []*command.Row{
		{Name: "get", Arity: -2, Flags: spec.Admin, Usage: "[count]", Summary: "Returns the slow log's entries.", Since: "2.2.12", Group: "server", Cost: "O(N) where N is the number of entries", Run: l.get},
		{Name: "len", Arity: 2, Flags: spec.Admin, Summary: "Returns the number of entries in the slow log.", Since: "2.2.12", Group: "server", Run: func(c *command.Call) { c.Int(int64(len(l.Last(-1)))) }},
		{Name: "reset", Arity: 2, Flags: spec.Admin, Summary: "Clears the slow log.", Since: "2.2.12", Group: "server", Run: func(c *command.Call) { l.Reset(); c.OK() }},
	}
}

func (l *Slowlog) get(c *command.Call) {
	count := int64(10)
	if len(c.Args) > 2 {
		n, ok := argument.ParseInt(c.Args[2])
		if len(c.Args) > 3 {
			c.Error(command.ErrArity, "slowlog|get")
			return
		}
		if !ok || n < -1 {
			c.Error(ErrSlowlogCount)
			return
		}
		count = n
	}
	entries := l.Last(count)
	c.Array(len(entries))
	for _, e := range entries {
		c.Array(6)
		c.Int(e.ID)
		c.Int(e.UnixS)
		c.Int(e.US)
		c.Strings(e.Args)
		c.String(e.Addr)
		c.String(e.Name)
	}
}
