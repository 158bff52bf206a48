package acl

import (
	"fmt"
	"slices"
	"sync"
)

// Reason is why something was refused.
type Reason string

// The reasons, in Redis's words.
const (
	DeniedCommand Reason = "command"
	DeniedKey     Reason = "key"
	DeniedAuth    Reason = "auth"

	DeniedCertificate Reason = "tls-cert" // as Valkey calls it
)

// Entry is what was refused, and how often lately.
type Entry struct {
	Count    int64
	Reason   Reason
	Context  string // toplevel, multi or lua
	Object   string // the command or key; of a wrong password the command that had it
	Username string
	AtNS     int64  // the last time
	Client   string // its line of CLIENT LIST, at that time
}

// Log keeps what was refused, the last first. The zero value is ready.
type Log struct {
	mu      sync.Mutex
	entries []Entry
}

const (
	sameNS    = 60e9 // what is refused again within a minute is counted, and has no entry of its own
	sameAmong = 10   // of the last so many entries
	mostText  = 1024 // bytes of a name that an entry keeps
)

// Add counts a refusal, and forgets the oldest beyond max.
func (l *Log) Add(e Entry, max int) {
	e.Count, e.Object, e.Username = 1, shorten(e.Object), shorten(e.Username)
	l.mu.Lock()
	defer l.mu.Unlock()
	near := l.entries[:min(len(l.entries), sameAmong)]
	if at := slices.IndexFunc(near, e.isLike); at >= 0 {
		e.Count += l.entries[at].Count
		l.entries = slices.Delete(l.entries, at, at+1)
	}
	l.entries = slices.Insert(l.entries, 0, e)
	if len(l.entries) > max {
		clear(l.entries[max:])
		l.entries = l.entries[:max]
	}
}

func (e Entry) isLike(o Entry) bool {
	return e.Reason == o.Reason && e.Context == o.Context && e.Object == o.Object && e.Username == o.Username &&
		max(e.AtNS-o.AtNS, o.AtNS-e.AtNS) <= sameNS
}

func shorten(text string) string {
	if len(text) <= mostText {
		return text
	}
	return fmt.Sprintf("%s... (%d more bytes)", text[:mostText], len(text)-mostText)
}

// Last returns the last n entries, the newest first.
func (l *Log) Last(n int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries[:min(max(n, 0), len(l.entries))])
}

// Reset forgets all entries.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
