//go:build linux

package transport

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Other goroutines ask a loop to look at a connection, or to do chores.

// ask puts a connection into the loop's inbox and wakes the loop. nil only wakes it.
func (l *epollLoop) ask(c *epollConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != nil && !c.inInbox {
		c.inInbox = true
		l.inbox = append(l.inbox, c)
	}
	if !l.closed && l.signal.CompareAndSwap(false, true) {
		_, _ = unix.Write(l.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// takeInbox takes what other goroutines have asked for. It reports whether the loop is to end.
func (l *epollLoop) takeInbox() (stop bool) {
	var count [8]byte
	_, _ = unix.Read(l.wakeFD, count[:])
	l.signal.Store(false) // after the read, which may take the signal of a later ask, and before the inbox is emptied
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.inbox {
		c.inInbox = false
	}
	l.woken = append(l.woken, l.inbox...)
	clear(l.inbox)
	l.inbox = l.inbox[:0]
	l.chores, l.asked = append(l.chores, l.asked...), nil
	return l.stop
}

// A chore is work that a loop does between its rounds, one step at a time.
type chore struct {
	step      func() (more bool)
	meanwhile bool // also in rounds in the middle of another round
}

// askChore has the loop do a step of the chore after each round, until the step returns false.
func (l *epollLoop) askChore(c chore) {
	l.mu.Lock()
	l.asked = append(l.asked, c)
	l.mu.Unlock()
	l.ask(nil)
}

func (l *epollLoop) doChores(meanwhile bool) {
	l.chores = slices.DeleteFunc(l.chores, func(c chore) bool { return (c.meanwhile || !meanwhile) && !c.step() })
}
