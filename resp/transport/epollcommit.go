//go:build linux

package transport

import (
	"slices"
	"sync/atomic"
	"time"
)

// committer writes the decisions of a loop's rounds before their replies leave.
type committer struct {
	loop *epollLoop
	err  error // of the round's changes

	stands    atomic.Int64 // the number of the commit that the loop's goroutine stands in; 0: none, or another goroutine has taken over
	commits   int64
	ahead     *standing    // a round whose commit another goroutine stands in; nil: none
	nextAhead *standing    // what the next of these will be
	kept      []*epollConn // have written since, and wait for the next commit
	putOff    []*epollConn // are not served until then
	keptBytes int          // bytes read in the rounds of those in kept
}

// commit writes the round's decisions to the disk before a reply leaves. After an error the replies say so.
//
// The loop itself waits for the disk. With 50 connections, -P 16, two processors and a disk that takes 0.1 ms, that makes
// 770,000 commands a second at 0.9 µs of CPU each, 415 a write. These alternatives were not faster:
//
//   - Serve other connections while a goroutine writes: 610,000 a second at 1.4 µs, some 330 a write. The two wake each other,
//     and the scheduler's monitor, which system calls of that length keep awake, took 16 % of all CPU.
//   - The same, with a sync that the scheduler does not see: 670,000 at 1.25 µs.
//   - The same, with a sync by the kernel's AIO: 560,000 to 590,000, against 580,000 in the same, slower hour, and 30 % of a
//     processor in a kernel thread.
//   - Look for more input before each write: 468 commands a write, but not more a second.
//   - RawSyscall for the sync, or no naps: no difference.
//
// Only where the disk is slow, others are served meanwhile: see takeOver. With leave, commit returns false when that has happened,
// and the caller is no longer the loop's goroutine.
func (d *committer) commit(leave bool) (still bool) {
	d.letGo()
	if d.ahead != nil {
		d.loop.server.Leave()
		d.keep()
		return true
	}
	number, round := int64(0), d.nextAhead
	if leave {
		d.commits++
		number = d.commits
		d.stands.Store(number)
	}
	err := d.loop.server.Commit()
	if leave && !d.stands.CompareAndSwap(number, 0) {
		round.land(d.loop, err)
		return false
	}
	d.confirm(d.loop.dirty, err)
	return true
}

// letGo sends the replies of those that have written nothing in this round. dirty keeps the others.
func (d *committer) letGo() {
	d.err = nil
	d.loop.dirty = slices.DeleteFunc(d.loop.dirty, func(c *epollConn) bool {
		if c.wrote = c.at() < gone && c.session.Wrote(); c.wrote {
			return false
		}
		if c.dirty = false; c.at() < gone {
			d.loop.do(c, (*epollConn).committed)
			d.loop.do(c, (*epollConn).flush)
		}
		return true
	})
}

// confirm passes on the replies of a round's connections, which need nothing more from the disk.
func (d *committer) confirm(conns []*epollConn, err error) {
	d.err = err
	for _, c := range conns {
		if c.at() < gone {
			d.loop.do(c, (*epollConn).committed)
		}
	}
}

// A loop's goroutine stands in Commit while the disk writes, which is best as long as the disk is fast: see committer.commit. When it
// has stood there for a while, another goroutine takes the loop over. The connections of the round stay held until the disk has it. Others
// are served, and get their replies if they have written nothing: above all a probe's PING. Those that write are held for the next commit.

// lookEvery is how often somebody looks whether a loop stands in Commit. One that does at two looks is taken over.
const lookEvery = 25 * time.Millisecond

// standing is a round whose goroutine stands in Commit and has lost its loop. The goroutine sets err, then landed.
type standing struct {
	conns  []*epollConn
	err    error
	landed atomic.Bool
}

// watch looks at the loops until they have ended.
func (e *epollCarrier) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	last := make([]int64, len(e.loops))
	for {
		select {
		case <-e.ended:
			return
		case <-ticker.C:
			for i, l := range e.loops {
				commit := l.disk.stands.Load()
				if commit != 0 && commit == last[i] && l.disk.stands.CompareAndSwap(commit, 0) {
					go l.takeOver()
				}
				last[i] = commit
			}
		}
	}
}

// takeOver goes on with a loop whose goroutine stands in Commit. That one never comes back to it.
func (l *epollLoop) takeOver() {
	defer l.escaped()
	l.disk.standAside()
	if l.finish() {
		l.rounds()
	}
}

// standAside holds the round's connections until a commit ends in which another goroutine stands.
func (d *committer) standAside() *standing {
	round := d.nextAhead
	d.ahead, d.nextAhead = round, &standing{}
	round.conns = append(round.conns, d.loop.dirty...)
	d.hold()
	d.keptBytes = 0
	return round
}

// land tells the loop that the disk has the round, or that it has refused it.
func (r *standing) land(l *epollLoop, err error) {
	r.err = err
	r.landed.Store(true)
	l.post(nil)
}

// commitAside is commit in the middle of the long command of c, from which nobody can take the loop over: another goroutine commits from
// the start. If c itself has written before, in the same round, the loop waits, as its later replies must not leave with that commit.
func (d *committer) commitAside(c *epollConn) {
	d.letGo()
	switch {
	case d.ahead != nil || len(d.loop.dirty) == 0:
		d.loop.server.Leave()
		d.keep()
	case slices.Contains(d.loop.dirty, c):
		d.confirm(d.loop.dirty, d.loop.server.Commit())
	default:
		round := d.standAside()
		go func() {
			defer d.loop.escaped()
			round.land(d.loop, d.loop.server.Commit())
		}()
	}
}

// hold stops the round's connections until the disk has the round. They are not served meanwhile.
func (d *committer) hold() {
	for _, c := range d.loop.dirty {
		c.held = true
	}
	d.loop.dirty = d.loop.dirty[:0]
}

// keep holds the connections that have written in this round until the next commit.
func (d *committer) keep() {
	if len(d.loop.dirty) > 0 {
		d.keptBytes += d.loop.taken
		d.kept = append(d.kept, d.loop.dirty...)
		d.hold()
	}
}

// land ends the wait of the round that another goroutine stands in Commit for, if the disk has it now. Its connections get their
// replies. Those that have written since join the round that begins.
func (d *committer) land() {
	round := d.ahead
	if round == nil || !round.landed.Load() {
		return
	}
	d.ahead = nil
	d.confirm(round.conns, round.err)
	for _, c := range round.conns {
		if c.dirty = false; c.at() < gone {
			d.loop.do(c, (*epollConn).flush)
		}
	}
	d.loop.dirty = append(d.loop.dirty, d.kept...)
	for _, c := range slices.Concat(round.conns, d.kept, d.putOff) {
		c.held = false
		c.readOn() // its events were ignored
		if c.missed {
			c.missed = false
			d.loop.post(c)
		}
	}
	clear(d.kept)
	clear(d.putOff)
	d.kept, d.putOff = d.kept[:0], d.putOff[:0]
}

// putsOff puts off a connection, and says so, while too much is kept: as much as a round may read. From half of that on, those are put off
// that have written lately, so that probes have the other half.
func (d *committer) putsOff(c *epollConn) bool {
	if d.ahead == nil || d.keptBytes < roundBytes/2 || d.keptBytes < roundBytes && !c.wrote {
		return false
	}
	c.held = true
	d.putOff = append(d.putOff, c)
	return true
}
