package persistence

import "sync"

// commits is where rounds of decisions meet that wait for the disk: one of them writes for all that have ended when it begins.
type commits struct {
	// deciding is held shared by rounds, and alone while their changes are gathered: so a write has those of whole rounds, and a
	// crash does not leave half of what EXEC has done.
	deciding sync.RWMutex

	sync.Mutex
	sync.Cond
	ended   int64 // rounds: the ticket of the last
	done    int64 // the last that is served
	leading bool
	failed  map[int64]error // by ticket, of rounds that have not asked yet
	buf     []byte          // empty, but while one of them gathers and writes
}

// Synchronous says whether replies have to wait for Commit.
func (d *Disk) Synchronous() bool { return d != nil && d.aof != nil && d.o.Fsync == Always }

// Begin begins a round of decisions that Commit ends. Rounds go on beside each other.
func (d *Disk) Begin() { d.aof.commits.deciding.RLock() }

// Commit ends a round and returns when what it has changed is on the disk. One write serves all that wait. If the disk refuses
// it, the error says why, the change stays in the store, and it is written when the disk takes writes again.
func (d *Disk) Commit() error {
	l := d.aof
	c := &l.commits
	c.Lock()
	defer c.Unlock()
	c.ended++
	ticket := c.ended
	c.deciding.RUnlock()
	if !l.active.Load() {
		return nil // nothing is decided yet
	}
	for c.done < ticket {
		if c.leading {
			c.Wait()
			continue
		}
		c.leading = true
		c.Unlock()
		serves, err := l.commit()
		c.Lock()
		for t := c.done + 1; err != nil && t <= serves; t++ {
			c.failed[t] = err
		}
		c.leading, c.done = false, serves
		c.Broadcast()
	}
	err := c.failed[ticket]
	delete(c.failed, ticket)
	return err
}

// commit writes what all rounds have changed that have ended, and returns the ticket of the last. Once a write was refused, it
// fails at once until tryAgain has succeeded; what changes meanwhile is but marks in the store.
func (l *appendLog) commit() (serves int64, err error) {
	c := &l.commits
	if refused := l.writeErr.Load(); refused != nil {
		err = *refused
	}
	b := c.buf
	c.deciding.Lock()
	c.Lock()
	serves = c.ended
	c.Unlock()
	for err == nil && l.gatherPiece(&b) {
		err = l.writePiece(&b)
	}
	c.deciding.Unlock()
	if err == nil {
		err = l.writePiece(&b)
	}
	if c.buf = b; cap(b) > gatherBytes {
		c.buf = nil
	}
	return serves, err
}

// gatherPiece gathers what one write takes, and says whether there may be more.
func (l *appendLog) gatherPiece(b *[]byte) (more bool) {
	for more = true; more && len(*b) < gatherBytes; {
		more = l.drain(b)
	}
	return more
}

// writePiece writes what was gathered, or keeps it to be tried again.
func (l *appendLog) writePiece(b *[]byte) error {
	if len(*b) == 0 {
		return nil
	}
	err := l.append(*b, true)
	if err != nil {
		l.refused, *b = *b, nil
		l.note(err)
	}
	*b = (*b)[:0]
	return err
}
