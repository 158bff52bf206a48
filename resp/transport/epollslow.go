//go:build linux

package transport

import (
	"slices"
	"sync/atomic"
	"time"
)

// A loop's goroutine stands in Commit while the disk writes, which is best as long as the disk is fast: see epollLoop.commit. When it
// has stood there for a while, another goroutine takes the loop over. The connections of the round stay held until the disk has it. Others
// are served, and get their replies if they have written nothing: above all a probe's PING. Those that write are held for the next commit.

// lookEvery is how often somebody looks whether a loop stands in Commit. One that does at two looks is taken over.
const lookEvery = 25 * time.Millisecond

// standing is a round that a goroutine stands in Commit for which has lost its loop. It sets err, then landed.
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
				commit := l.stands.Load()
				if commit != 0 && commit == last[i] && l.stands.CompareAndSwap(commit, 0) {
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
	l.standAside()
	if l.finish() {
		l.rounds()
	}
}

// standAside has the round's connections wait for a commit in which another goroutine stands.
func (l *epollLoop) standAside() *standing {
	round := l.nextAhead
	l.ahead, l.nextAhead = round, &standing{}
	round.conns = append(round.conns, l.dirty...)
	l.hold()
	l.keptBytes = 0
	return round
}

// land tells the loop that the disk has the round, or that it has refused it.
func (r *standing) land(l *epollLoop, err error) {
	r.err = err
	r.landed.Store(true)
	l.ask(nil)
}

// commitAside is commit in the middle of the long command of c, from which nobody can take the loop over: another goroutine commits from the
// start. If c itself has written before, in the same round, the loop waits, as its later replies must not leave with that commit.
func (l *epollLoop) commitAside(c *epollConn) {
	l.letGo()
	switch {
	case l.ahead != nil || len(l.dirty) == 0:
		l.server.Leave()
		l.keep()
	case slices.Contains(l.dirty, c):
		l.confirm(l.dirty, l.server.Commit())
	default:
		round := l.standAside()
		go func() {
			defer l.escaped()
			round.land(l, l.server.Commit())
		}()
	}
}

// hold has the round's connections wait for the disk. They are not served meanwhile.
func (l *epollLoop) hold() {
	for _, c := range l.dirty {
		c.held = true
	}
	l.dirty = l.dirty[:0]
}

// keep holds those that have written in this round until the next commit.
func (l *epollLoop) keep() {
	if len(l.dirty) > 0 {
		l.keptBytes += l.taken
		l.kept = append(l.kept, l.dirty...)
		l.hold()
	}
}

// land ends the wait of the round that another goroutine stands in Commit for, if the disk has it now. Its connections get their
// replies. Those that have written since join the round that begins.
func (l *epollLoop) land() {
	round := l.ahead
	if round == nil || !round.landed.Load() {
		return
	}
	l.ahead = nil
	l.confirm(round.conns, round.err)
	for _, c := range round.conns {
		if c.dirty = false; c.at() < gone {
			l.do(c, (*epollConn).flush)
		}
	}
	l.dirty = append(l.dirty, l.kept...)
	for _, c := range slices.Concat(round.conns, l.kept, l.putOff) {
		c.held = false
		c.readOn() // its events were ignored
		if c.missed {
			c.missed = false
			l.ask(c)
		}
	}
	clear(l.kept)
	clear(l.putOff)
	l.kept, l.putOff = l.kept[:0], l.putOff[:0]
}

// putsOff puts off a connection, and says so, while too much is kept: as much as a round may read. From half of that on, those are put off
// that have written lately, so that probes have the other half.
func (l *epollLoop) putsOff(c *epollConn) bool {
	if l.ahead == nil || l.keptBytes < roundBytes/2 || l.keptBytes < roundBytes && !c.wrote {
		return false
	}
	c.held = true
	l.putOff = append(l.putOff, c)
	return true
}
