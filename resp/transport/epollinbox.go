//go:build linux

package transport

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// inbox is how other goroutines ask a loop to look at a connection, or to do chores.
type inbox struct {
	wakeFD int
	signal atomic.Bool // the descriptor has been written to

	mu     sync.Mutex
	conns  []*epollConn // new, woken and closed ones
	chores []chore      // new ones
	closed bool         // the descriptor is closed; its number may belong to another file
}

// A chore is work that a loop does between its rounds, one step at a time.
type chore struct {
	step      func() (more bool)
	meanwhile bool // also in rounds in the middle of another round
}

func (i *inbox) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	unix.Close(i.wakeFD)
}

// post puts a connection in and wakes the loop. nil only wakes it.
func (i *inbox) post(c *epollConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c != nil && !c.inInbox {
		c.inInbox = true
		i.conns = append(i.conns, c)
	}
	if !i.closed && i.signal.CompareAndSwap(false, true) {
		_, _ = unix.Write(i.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// postChore gives the loop a chore. It does a step of it after each round, until the step returns false.
func (i *inbox) postChore(c chore) {
	i.mu.Lock()
	i.chores = append(i.chores, c)
	i.mu.Unlock()
	i.post(nil)
}

// drain empties the inbox: it appends the connections and the chores to these.
func (i *inbox) drain(conns []*epollConn, chores []chore) ([]*epollConn, []chore) {
	var count [8]byte
	_, _ = unix.Read(i.wakeFD, count[:])
	i.signal.Store(false) // after the read, which may take the signal of a later post, and before the inbox is emptied
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.conns {
		c.inInbox = false
	}
	conns, chores = append(conns, i.conns...), append(chores, i.chores...)
	clear(i.conns)
	i.conns, i.chores = i.conns[:0], nil
	return conns, chores
}
