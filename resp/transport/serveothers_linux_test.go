package transport

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A long command is no part of a round that waits for the disk, until it changes something. Others get their replies meanwhile,
// and those that waited before are on the disk first.
func TestALongCommandAndTheDisk(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	var ended atomic.Bool
	var runs peer
	c.handle = func(s *fakeSession, line string) bool {
		switch line {
		case "long":
			runs.send("next\n") // of which the events tell meanwhile
			for !ended.Load() {
				s.conn.ServeOthers(false)
			}
			s.conn.Resume()
			s.conn.Resume() // which says nothing more
		case "look":
			ended.Store(true)
		}
		return false
	}
	l := loopOf(t, c)
	defer l.closeAll()
	var conn *epollConn
	conn, runs = carry(t, c, l)
	_, early := carry(t, c, l)
	_, comes := carry(t, c, l)
	round(t, l, func() {})
	commits, begins := c.commits.Load(), c.begins.Load()
	var served sync.WaitGroup
	early.send("early\n")
	runs.send("long\n")
	conn.Wake()
	served.Go(func() { round(t, l, func() {}) })
	early.want("early\n")         // while the command runs
	comes.ask("look\n", "look\n") // which changes nothing
	runs.want("long\n")
	served.Wait()
	if n := c.commits.Load() - commits; n != 2 {
		t.Errorf("%d commits, want one for those before and one for the command", n)
	}
	if n := c.begins.Load() - begins; n != 1 {
		t.Errorf("%d rounds began anew, want 1", n)
	}
	comes.send("a\n")
	round(t, l, func() {})
	comes.want("a\n")
	runs.want("next\n")
}

// While a disk stands, a long command keeps nobody waiting but those who have written.
func TestALongCommandOnAStandingDisk(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	disk := make(chan error)
	release := sync.OnceFunc(func() { close(disk) })
	defer release()
	var ended atomic.Bool
	c.handle = func(s *fakeSession, line string) bool {
		switch line {
		case "long":
			c.gate.Store(&disk)
			for !ended.Load() {
				s.conn.ServeOthers(false)
			}
			s.conn.Resume()
		case "end":
			ended.Store(true)
		}
		return false
	}
	l := loopOf(t, c)
	_, writes := carry(t, c, l)
	_, runs := carry(t, c, l)
	_, looks := carry(t, c, l)
	round(t, l, func() {})
	writes.send("a\n") // in the same round
	runs.send("long\n")
	go l.run()
	looks.ask("look\n", "look\n")
	writes.wantNothing()
	release()
	writes.want("a\n")
	writes.ask("end\n", "end\n")
	runs.want("long\n")
	l.askStop()
	<-l.over
}

// The replies to what a connection has written before its long command do not leave with those to what it writes after it.
func TestALongCommandAfterAWrite(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	disk := make(chan error, 9)
	c.handle = func(s *fakeSession, line string) bool {
		if line == "long" {
			s.flush()
			s.conn.ServeOthers(false)
			s.conn.Resume()
		}
		return false
	}
	l := loopOf(t, c)
	defer l.closeAll()
	_, p := carry(t, c, l)
	round(t, l, func() {})
	c.gate.Store(&disk)
	disk <- nil
	disk <- errors.New("full")
	p.send("a\nlong\nb\n")
	round(t, l, func() {})
	p.want("a\nfull\n")
}

// A command's changes are not on the disk before it ends, so nobody is served meanwhile. But the acceptor need not wait, and the
// end of the server is not forgotten.
func TestALongCommandThatHasWritten(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	disk := make(chan error, 9)
	c.gate.Store(&disk)
	var other peer
	var l *epollLoop
	deadline := time.Now().Add(patience)
	c.handle = func(s *fakeSession, line string) bool {
		if line == "long" {
			settled := make(chan bool)
			go func() { (&epollCarrier{loops: []*epollLoop{l}}).settle(t.Context()); close(settled) }()
			for waits := true; waits && !l.stopping; {
				s.conn.ServeOthers(true)
				select {
				case <-settled:
					waits = false
				default:
					waits = time.Now().Before(deadline)
				}
			}
			if time.Now().After(deadline) || l.stopping {
				t.Errorf("the acceptor waits, or the loop stops (%v) without being told", l.stopping)
			}
			l.askStop()
			for range 10 {
				s.conn.ServeOthers(true)
			}
			s.conn.Resume()
			if !l.stopping {
				t.Error("the loop has forgotten that it is to stop")
			}
			other.wantNothing()
		}
		return false
	}
	l = loopOf(t, c)
	defer l.closeAll()
	_, runs := carry(t, c, l)
	_, other = carry(t, c, l)
	disk <- nil
	round(t, l, func() {})
	runs.send("long\n")
	other.send("a\n")
	disk <- errors.New("full")
	disk <- nil
	for range 2 {
		round(t, l, func() {})
		if c.commits.Load() == 3 {
			break
		}
	}
	if n := c.begins.Load(); n != 0 {
		t.Errorf("%d rounds began anew", n)
	}
}

// A call that waits may be granted while a long command runs. Its reply leaves after the commit of that.
func TestAGrantDuringALongCommand(t *testing.T) {
	c := &carried{Options: Options{Sync: true}}
	var l *epollLoop
	var granted *fakeSession
	var waits peer
	c.handle = func(s *fakeSession, line string) bool {
		switch line {
		case "wait":
			granted = s
			s.wait(true, "granted\n")
			return true
		case "long":
			s.conn.ServeOthers(false)
			commits, begins := c.commits.Load(), c.begins.Load()
			granted.wrote = true
			granted.finish()
			for l.disk.ahead == nil {
				s.conn.ServeOthers(false)
			}
			eventually(t, "commit", l.disk.ahead.landed.Load)
			s.conn.ServeOthers(false)
			waits.want("granted\n")
			if n := c.commits.Load() - commits; n != 1 || c.begins.Load()-begins != 1 {
				t.Errorf("%d commits of a grant, want 1", n)
			}
			s.conn.ServeOthers(false)
			if n := c.commits.Load() - commits; n != 1 {
				t.Errorf("%d commits though nobody has written", n-1)
			}
			s.conn.Resume()
		}
		return false
	}
	l = loopOf(t, c)
	defer l.closeAll()
	_, waits = carry(t, c, l)
	_, runs := carry(t, c, l)
	waits.send("wait\n")
	for range 2 {
		round(t, l, func() {})
	}
	runs.send("long\n")
	round(t, l, func() {})
	runs.want("long\n")
}
