//go:build linux

package transport

import (
	"context"
	"errors"
	"net"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const pollHalf = unix.POLLRDHUP // the event of a peer that has closed its half

// HasLoops says whether this system has event loops. Only Linux has.
const HasLoops = true

// epollCarrier spreads connections over event loops.
type epollCarrier struct {
	t     *Transport
	loops []*epollLoop
	ended chan struct{} // closed when no loop runs any more
}

func newLoops(t *Transport, n int) (carrier, error) {
	e := &epollCarrier{t: t, ended: make(chan struct{})}
	spare := runtime.GOMAXPROCS(0) > n
	for range n {
		l, err := newEpollLoop(t, spare)
		if err != nil {
			e.stop()
			return nil, err
		}
		e.loops = append(e.loops, l)
		go l.run()
	}
	if t.synced {
		go e.watch()
	}
	return e, nil
}

// adopt gives a connection to the loop with the fewest.
func (e *epollCarrier) adopt(conn net.Conn, session Session, over *secure) {
	loop := e.loops[0]
	for _, l := range e.loops {
		if l.count.Load() < loop.count.Load() {
			loop = l
		}
	}
	// As if it were in the inbox already: so nobody who closes it brings it to the loop before its session knows whose it is.
	c := &epollConn{loop: loop, stream: stream{session: session, secure: over}, fd: -1, inInbox: true}
	defer func() {
		if c.fd < 0 { // also after a panic
			session.Closed()
		}
	}()
	if over != nil {
		over.below.inLoop, over.below.Conn, over.below.spares = true, nil, &loop.spares
	}
	fd, err := detach(conn)
	if err != nil {
		e.t.server.Rejected(conn.RemoteAddr())
		e.t.server.Warn("cannot serve a connection", session, err)
		return
	}
	c.fd = fd
	loop.count.Add(1)
	known := false
	defer func() {
		if !known { // after a panic
			c.reach(cut)
		}
		loop.mu.Lock()
		c.inInbox = false
		loop.mu.Unlock()
		loop.post(c)
	}()
	c.open(c, fd)
	known = true
}

// mostSettling bounds the rounds that settle waits for, as a loop may always have something to read.
const mostSettling = 16

// settle waits for at least two rounds of each loop. The first takes in new connections; the second meets the end of those that
// have ended. More rounds follow while there is input to answer before an end is met. A long script does not delay it.
func (e *epollCarrier) settle(ctx context.Context) {
	done := make(chan struct{}, len(e.loops))
	for _, l := range e.loops {
		rounds := 0
		l.postChore(chore{meanwhile: true, step: func() (more bool) {
			if rounds++; rounds < 2 || rounds < mostSettling && len(l.unread)+len(l.late)+len(l.woken) > 0 {
				return true
			}
			done <- struct{}{}
			return false
		}})
	}
	for range e.loops {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// background gives the first loop work. It does a step after each round, and step after step while there is nothing else to do. When a
// goroutine did the same work with short locks, connections waited for up to 7 ms: a loop that finds a lock taken sleeps, and
// while another thread has the processor it wakes only at the kernel's next tick.
func (e *epollCarrier) background(step func() (more bool)) {
	e.loops[0].postChore(chore{step: step})
}

// owes asks each loop between two of its rounds.
func (e *epollCarrier) owes(patience time.Duration) bool {
	answers, owes := make(chan bool, len(e.loops)), false
	for _, l := range e.loops {
		at, some := 0, false
		l.postChore(chore{step: func() (more bool) {
			end := min(at+owesStep, len(l.conns))
			some = l.owesTo(l.conns[at:end]) || some
			if at = end; at < len(l.conns) {
				return true
			}
			l.draining = true
			answers <- some
			return false
		}})
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for range e.loops {
		select {
		case one := <-answers:
			owes = owes || one
		case <-timer.C:
			return true
		}
	}
	return owes
}

// owesStep is at how many connections a loop looks between two rounds: at 10,000 it looks for 10 ms.
const owesStep = 512

// owesTo is Transport.Owes for some of the loop's connections. It runs between two rounds. Once it has
// run for all of them, its caller sets draining.
func (l *epollLoop) owesTo(conns []*epollConn) (owes bool) {
	for _, c := range conns {
		if c == nil {
			continue
		}
		arrived, _ := unix.IoctlGetInt(c.fd, unix.TIOCINQ)
		switch more := arrived > 0 || c.more || c.paused || c.hasBehind(); {
		case !l.draining && more:
			c.owed = onItsWay
		case more:
			c.calm = 0
		case c.owed > 0:
			if c.calm++; c.calm == 2 { // at the first look the peer's kernel may not know yet that there is room
				c.owed = 0
			}
		}
		if c.full && !c.held {
			l.do(c, (*epollConn).flush) // the kernel tells of room only when a third of its buffer is free
		}
		owes = owes || c.owed > 0 && c.at() < closing || c.pending() > 0
	}
	return owes
}

// askStop asks the loop to end. The step reports that there is more to do, so that the loop does not sleep before it ends.
func (l *epollLoop) askStop() {
	l.postChore(chore{meanwhile: true, step: func() (more bool) { l.stopping = true; return true }})
}

func (e *epollCarrier) stop() {
	for _, l := range e.loops {
		l.askStop()
	}
	for _, l := range e.loops { // not for their goroutines, which change when a loop is taken over
		<-l.over
	}
	close(e.ended)
}

// detach takes a connection's socket from Go's poller, and returns a non-blocking descriptor for it.
func detach(conn net.Conn) (fd int, err error) {
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	fd = -1
	controlErr := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(controlErr, err)
}
