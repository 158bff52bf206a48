package persistence

import "sync"

// commits lets rounds of decisions share a write: one of them writes for all that have ended before it begins.
type commits struct {
	// deciding is held for reading by each round, and for writing while changes are gathered. So a write holds the changes
	// of whole rounds, and a crash does not leave half of an EXEC.
	deciding sync.RWMutex

	sync.Mutex
	sync.Cond
	ended   int64           // rounds that have ended; a round's ticket is its number among them
	done    int64           // the last ticket that was written, or refused
	leading bool            // a round writes
	failed  map[int64]error // errors by ticket, of rounds that have not fetched theirs yet
	buf     []byte          // of the round that writes; empty in between
}

// Synchronous says whether replies must wait for Commit: with an append-only file and Always. d may be nil.
func (d *Disk) Synchronous() bool { return d != nil && d.aof != nil && d.o.Fsync == Always }

// Begin begins a round of decisions. Commit or Leave ends it. Rounds run in parallel.
func (d *Disk) Begin() { d.aof.commits.deciding.RLock() }

// Leave ends a round without waiting for the disk. What it has changed is written by the next Commit.
func (d *Disk) Leave() { d.aof.commits.deciding.RUnlock() }

// Commit ends a round and returns when its changes are on the disk. One write serves all rounds that wait. If the disk
// refuses the write, Commit returns the error. The changes stay in the store, and are written once the disk accepts writes.
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

// commit writes the changes of all rounds that have ended, and returns the ticket of the last. After a write was refused it
// fails at once until tryAgain succeeds. Changes made meanwhile are marks in the store.
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
	c.buf = b
	return serves, err
}

// gatherPiece gathers up to gatherBytes, and says whether there may be more.
func (l *appendLog) gatherPiece(b *[]byte) (more bool) {
	for more = true; more && len(*b) < gatherBytes; {
		more = l.drain(b, false)
	}
	return more
}

// writePiece writes what was gathered. After an error it keeps that for tryAgain. A buffer that a key with long logs has made grow is not kept.
func (l *appendLog) writePiece(b *[]byte) error {
	if len(*b) == 0 {
		return nil
	}
	err := l.append(*b, !l.disk.unsynced.Load())
	if err != nil {
		l.refused, *b = *b, nil
		l.note(err)
	}
	if *b = (*b)[:0]; cap(*b) > 4*gatherBytes {
		*b = nil
	}
	return err
}
