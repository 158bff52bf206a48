package resp

import (
	"fmt"
	"slices"
	"sync"

	"celld/resp/command"
)

// Redis's limits for what an entry keeps of its command.
const (
	slowlogMaxArgs = 32
	slowlogMaxArg  = 128
)

// slowlog keeps the last commands that took longer than slowlog-log-slower-than.
type slowlog struct {
	mu      sync.Mutex
	nextID  int64
	entries []slowEntry // oldest first
}

type slowEntry struct {
	id    int64
	unixS int64
	us    int64
	args  []string
	addr  string
	name  string
}

func (l *slowlog) add(s *Session, row *command.Row, args [][]byte, tookNS int64) {
	threshold := s.srv.cfg.slowlogSlowerThan.Get()
	if threshold < 0 || tookNS/1e3 < threshold || row.Flags&command.SkipSlowlog != 0 {
		return
	}
	s.client.mu.Lock()
	name := s.client.name
	s.client.mu.Unlock()
	e := slowEntry{0, s.wallNS() / 1e9, tookNS / 1e3, trimArgs(args), s.client.addr, name}
	s.once(func() {
		l.put(s, e)
		s.tell(tellSlow, "command", row.FullName(), "took_us", e.us)
	})
}

func (l *slowlog) put(s *Session, e slowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	if extra := len(l.entries) - int(s.srv.cfg.slowlogMaxLen.Get()); extra > 0 {
		l.entries = l.entries[extra:]
	}
}

// last returns the n newest entries, the newest first; all of them if n is negative.
func (l *slowlog) last(n int64) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > int64(len(l.entries)) {
		n = int64(len(l.entries))
	}
	newest := slices.Clone(l.entries[int64(len(l.entries))-n:])
	slices.Reverse(newest)
	return newest
}

func (l *slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// trimArgs is what an entry keeps of a command.
func trimArgs(args [][]byte) []string {
	var kept []string
	secret := secretFrom(args)
	for i, arg := range args {
		if i == slowlogMaxArgs-1 && len(args) > slowlogMaxArgs {
			kept = append(kept, fmt.Sprintf("... (%d more arguments)", len(args)-i))
			break
		}
		switch {
		case i >= secret:
			kept = append(kept, redacted)
		case len(arg) > slowlogMaxArg:
			kept = append(kept, fmt.Sprintf("%s... (%d more bytes)", arg[:slowlogMaxArg], len(arg)-slowlogMaxArg))
		default:
			kept = append(kept, string(arg))
		}
	}
	return kept
}
