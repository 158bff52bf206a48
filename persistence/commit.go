package persistence

import "sync"

// commits lets rounds of decisions share a write. The first round that ends after a write has begun does the next write, for all rounds
// that have ended by then.
type commits struct {
	// deciding is read-locked by each round, and locked while changes are gathered. So a write holds the changes of whole rounds, and a
	// crash does not leave half of an EXEC.
	deciding sync.RWMutex

	mu   sync.Mutex
	next *batch // rounds that have ended since the last write began; nil: none
}

// batch is the rounds that share a write.
type batch struct {
	done chan struct{}
	err  error // once done is closed
}

// Synchronous reports whether replies must wait for Commit: with an append-only file and Always. d may be nil.
func (d *Disk) Synchronous() bool { return d != nil && d.aof != nil && d.o.Fsync == Always }

// Begin begins a round of decisions. Commit or Leave ends it. Rounds run in parallel.
func (d *Disk) Begin() { d.aof.commits.deciding.RLock() }

// Leave ends a round without waiting for the disk. The next Commit writes its changes.
func (d *Disk) Leave() { d.aof.commits.deciding.RUnlock() }

// Commit ends a round and returns when its changes are on the disk. One write serves all rounds that wait. If the disk
// refuses the write, Commit returns the error. The changes stay in the store, and are written once the disk accepts writes.
func (d *Disk) Commit() error {
	l := d.aof
	c := &l.commits
	if !l.active.Load() { // nothing is decided yet
		c.deciding.RUnlock()
		return nil
	}
	c.mu.Lock()
	b, first := c.next, c.next == nil
	if first {
		b = &batch{done: make(chan struct{})}
		c.next = b
	}
	c.mu.Unlock()
	c.deciding.RUnlock()
	if first {
		l.turn <- struct{}{}
		b.err = l.commit()
		<-l.turn
		close(b.done)
	}
	<-b.done
	return b.err
}

// commit writes the changes of all rounds that have ended, as one unit. After a refused write it fails at once until tryAgain succeeds.
// Meanwhile changes are marks in the store. The caller has the turn.
func (l *appendLog) commit() error {
	if refused := l.writeErr.Load(); refused != nil {
		l.commits.between(func() {})
		return *refused
	}
	return l.flush(l.write)
}

// between calls do between two rounds, those that have ended included.
func (c *commits) between(do func()) (did bool) {
	c.deciding.Lock()
	defer c.deciding.Unlock()
	c.next = nil // rounds join it before they let go of the lock
	do()
	return true
}
