package slowlog

import (
	"fmt"
	"slices"
	"sync"
)

// Redis's limits for what an entry keeps of its command.
const (
	mostArgs = 32
	mostArg  = 128
)

// Log keeps the last entries. Any goroutine may use it.
type Log struct {
	most func() int64

	mu      sync.Mutex
	nextID  int64
	entries []Entry // oldest first
}

// Entry is a command that took long.
type Entry struct {
	ID    int64 // from Log.Add
	UnixS int64
	US    int64    // µs that it took
	Args  []string // from Trim
	Addr  string   // of its client
	Name  string   // of its client
}

// New returns a log of at most so many entries.
func New(most func() int64) *Log { return &Log{most: most} }

// Add adds an entry, and drops the oldest where there are too many.
func (l *Log) Add(e Entry) {
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
func (l *Log) Last(n int64) []Entry {
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
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// Trim is what an entry keeps of a command.
func Trim(args [][]byte) []string {
	var kept []string
	for i, arg := range args {
		if i == mostArgs-1 && len(args) > mostArgs {
			return append(kept, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		}
		if len(arg) > mostArg {
			kept = append(kept, fmt.Sprintf("%s... (%d more bytes)", arg[:mostArg], len(arg)-mostArg))
		} else {
			kept = append(kept, string(arg))
		}
	}
	return kept
}
