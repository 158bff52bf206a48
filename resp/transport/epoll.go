//go:build linux

package transport

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	flushAt = 64 << 10 // so many reply bytes leave before their round ends

	readSize  = 64 << 10 // of one read, shared by the connections of a loop
	maxEvents = 256

	// roundBytes bounds what a round reads where its replies wait for the disk: what it changes is held in memory until then,
	// some six times. 2 MB are 50,000 calls of CL.THROTTLE.
	roundBytes = 2 << 20

	// Edge-triggered: after a read that does not fill the buffer the socket is empty, and epoll need not look at it again
	// in the next round, which with recv and send in place of read and write saves 6 % of a command's CPU at -P 1.
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	broken   = unix.EPOLLHUP | unix.EPOLLERR // nothing arrives or leaves any more
	ended    = unix.EPOLLRDHUP | broken      // the last event of a connection's input
)

// On Linux connections are carried by event loops on epoll. They are ours because this is where a decision's time goes:
// at one command a packet, 86 % of it is the kernel's. gnet in their place writes to each connection as soon as it is
// answered and makes each read and write a blocking system call in the eyes of Go's scheduler: in one run it took 5.0 µs
// a command against 4.4 (-P 1) and 0.45 against 0.39 (-P 16). Its acceptor also ends the process when descriptors run
// out.

// epollLoop is an event loop: one goroutine that reads, answers and writes for its connections.
//
// A round answers all connections that have something to read before it writes to any, as Redis does: the peers then
// find their replies together and send their next commands together, which saves both sides wake-ups.
type epollLoop struct {
	server   Server
	synced   bool // rounds are committed
	epoll    int
	wakeFD   int
	spare    bool // there are processors that run no loop
	buf      []byte
	events   []unix.EpollEvent
	conns    []*epollConn // by descriptor
	taken    int          // bytes read in this round
	late     []*epollConn // not read in this round, as taken was enough; the first in the next
	unread   []*epollConn // may have more to read than their last read took
	queue    []*epollConn // to be read in this round
	next     int          // in queue
	woken    []*epollConn // of whom others asked something, to be looked at in this round
	looked   int          // of woken
	dirty    []*epollConn // have output that no write has been tried for
	ended    []*epollConn // to be closed after that
	free     [][]byte     // output buffers between uses
	naps     naps
	left     bool    // the round has ended before its time: meanwhile
	stopping bool    // closeAll follows
	otherBuf []byte  // for reads meanwhile
	chores   []chore // what is done between the rounds, a step of each

	count  atomic.Int64 // connections, for balance
	signal atomic.Bool  // the wake descriptor has been written to
	mu     sync.Mutex
	inbox  []*epollConn // new, woken and closed ones
	asked  []chore      // to be taken over
	stop   bool
	closed bool // and so is the wake descriptor, whose number may be another file's

	draining  bool  // the server stops
	commitErr error // of the round's changes
}

func newEpollLoop(t *Transport, spare bool) (*epollLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l := &epollLoop{server: t.server, synced: t.synced, epoll: epoll, wakeFD: wake, spare: spare, buf: make([]byte, readSize), events: make([]unix.EpollEvent, maxEvents)}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		unix.Close(epoll)
		unix.Close(wake)
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	return l, nil
}

func (l *epollLoop) run() {
	defer l.escaped()
	for {
		n, err := l.wait()
		if err != nil { // its connections cannot be served any more
			l.server.Fatal("epoll_wait failed", "error", err)
			return
		}
		if l.synced {
			l.server.Begin()
		}
		l.serve(n)
		l.commit()
		l.send()
		if l.stopping {
			l.closeAll()
			return
		}
		if len(l.chores) > 0 {
			l.doChores(false)
			// Who was just answered may be waiting for this processor, which the kernel would not give it before its next tick.
			_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}

// serve answers what there is to read: what was left by the round before, n events, and what others asked for.
func (l *epollLoop) serve(n int) {
	l.queue = append(append(l.queue, l.late...), l.unread...)
	l.late, l.unread, l.taken = l.late[:0], l.unread[:0], 0
	for i := range n {
		ev := &l.events[i]
		if int(ev.Fd) == l.wakeFD {
			l.stopping = l.takeInbox() || l.stopping
			continue
		}
		c := l.conns[ev.Fd]
		if c == nil {
			continue
		}
		if ev.Events&unix.EPOLLOUT != 0 && !c.dirty {
			l.do(c, (*epollConn).flush)
		}
		if ev.Events&^unix.EPOLLOUT != 0 {
			c.end |= ev.Events & ended
			if !c.queued {
				c.queued = true
				l.queue = append(l.queue, c)
			}
		}
	}
	for len(l.queue) > l.next { // a step may go through the rest of it (meanwhile), and of woken
		c := l.queue[l.next]
		l.next++
		c.queued = false
		l.do(c, (*epollConn).read)
	}
	l.queue, l.next = l.queue[:0], 0
	for len(l.woken) > l.looked {
		c := l.woken[l.looked]
		l.looked++
		l.do(c, (*epollConn).look)
	}
	clear(l.woken)
	l.woken, l.looked = l.woken[:0], 0
}

// send writes the replies of a round, and begins to close what has ended in it.
func (l *epollLoop) send() {
	for _, c := range l.dirty {
		c.dirty = false
		if c.at() < gone {
			l.do(c, (*epollConn).flush)
		}
	}
	l.dirty = l.dirty[:0]
	for _, c := range l.ended {
		l.do(c, (*epollConn).linger)
	}
	l.ended = l.ended[:0]
}

// meanwhile is a round in the middle of another, for all but the connection that keeps that one. What waits to be written is
// written to the disk first, and then that connection is in no round until resume, so that nobody waits for it. Where it
// has made changes already that cannot be: then nobody is served, as with any long command.
func (l *epollLoop) meanwhile(c *epollConn, wrote bool) {
	defer l.doChores(true)
	if l.synced && !l.left {
		if wrote {
			l.stopping = l.takeInbox() || l.stopping
			return
		}
		l.commit()
		l.left = true
	}
	n, err := l.poll(0)
	if err != nil {
		return // the loop's own wait meets it, too
	}
	buf := l.buf // has the rest of what the connection sent
	if l.buf = l.otherBuf; l.buf == nil {
		l.buf = make([]byte, readSize)
	}
	l.serve(n)
	if l.synced {
		l.commitErr = nil // nothing was changed
		for _, c := range l.dirty {
			if c.at() < gone {
				l.do(c, (*epollConn).committed)
			}
		}
	}
	l.send()
	l.buf, l.otherBuf = buf, l.buf
	c.readOn() // its events were passed over
}

// resume is in a round again.
func (l *epollLoop) resume() {
	if l.left {
		l.left = false
		l.server.Begin()
	}
}

// commit has all that the round has decided on the disk before a reply leaves, or answers that it could not.
//
// The loop waits for that itself. What failed, at 50 connections, -P 16, on two processors and a disk that needs 0.1 ms, where
// waiting made 770,000 commands a second at 0.9 µs of CPU each, and 415 a write: to go on with other connections while
// another goroutine writes (610,000 at 1.4 µs and some 330 a write; the loop and it wake each other, and the scheduler's
// monitor, awake by system calls of that length, took 16 % of all CPU), with a sync behind the scheduler's back (670,000
// at 1.25 µs), or with one by the kernel's AIO (560,000 to 590,000 beside 580,000 in a slower hour, and 30 % of a processor in
// a kernel thread). To look again for connections with something to read before each write made that 468 commands, but
// not more a second; RawSyscall for the sync, and no naps, made no difference either.
func (l *epollLoop) commit() {
	if !l.synced {
		return
	}
	l.commitErr = l.server.Commit()
	for _, c := range l.dirty {
		if c.at() < gone {
			l.do(c, (*epollConn).committed)
		}
	}
}

// do takes a step with a connection. A panic in it ends that connection alone.
func (l *epollLoop) do(c *epollConn, step func(*epollConn)) {
	defer func() {
		if cause := recover(); cause != nil {
			l.server.Panicked(cause, "connection", c.session)
			c.serving = false
			c.close()
		}
	}()
	step(c)
}

// escaped ends the process when a loop has panicked outside of a step with a connection: nobody would serve what it carries.
func (l *epollLoop) escaped() {
	if cause := recover(); cause != nil {
		l.server.Fatal("panic in an event loop, cannot go on", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	}
}

// wait returns events, and sleeps until there are any.
//
// Where there is a processor more than loops, which runs what else there is to run, the loop sleeps and naps behind the
// back of Go's scheduler, for a millisecond at most: the scheduler would take the processor away from a thread that blocks
// for 20 µs, and its monitor, which does so, would look every 20 µs again; that was 8 % of all CPU at one command a packet.
func (l *epollLoop) wait() (int, error) {
	if len(l.unread)+len(l.late) > 0 || len(l.chores) > 0 {
		return l.poll(0)
	}
	if l.naps.due() {
		if n, err := l.poll(0); n != 0 || err != nil {
			return n, err
		}
		l.nap()
		n, err := l.poll(0)
		l.naps.gathered(n)
		if n != 0 || err != nil {
			return n, err
		}
	}
	if l.spare {
		if n, err := l.poll(1); n != 0 || err != nil {
			return n, err
		}
	}
	for {
		n, err := unix.EpollWait(l.epoll, l.events, -1)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (l *epollLoop) poll(ms int) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(address(l.events)), maxEvents, uintptr(ms), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EINTR:
		return 0, nil
	}
	return 0, errno
}

func (l *epollLoop) nap() {
	nap := unix.Timespec{Nsec: napNS}
	if l.spare {
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0)
	} else {
		_ = unix.Nanosleep(&nap, nil)
	}
}

// onItsWay is how much a peer can have sent that has not been read: what two sockets hold. From a connection that had input
// when the server was told to stop, so much is answered at most.
const onItsWay = 8 << 20

// owes reports whether something is unanswered that had been sent when it was first asked, or a reply has not left. It is
// asked between two rounds.
func (l *epollLoop) owes() (owes bool) {
	for _, c := range l.conns {
		if c == nil {
			continue
		}
		arrived, _ := unix.IoctlGetInt(c.fd, unix.TIOCINQ)
		switch more := arrived > 0 || c.more || c.paused; {
		case !l.draining && more:
			c.owed = onItsWay
		case more:
			c.calm = 0
		case c.owed > 0:
			if c.calm++; c.calm == 2 { // once may be while the peer's kernel learns that there is room
				c.owed = 0
			}
		}
		if c.full {
			l.do(c, (*epollConn).flush) // the kernel tells of room only when a third of its buffer is free
		}
		owes = owes || c.owed > 0 && c.at() < closing || len(c.out) > c.sent
	}
	l.draining = true
	return owes
}

func (l *epollLoop) closeAll() {
	for _, c := range l.conns {
		if c != nil {
			l.do(c, (*epollConn).flush)
			c.close()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	unix.Close(l.epoll)
	unix.Close(l.wakeFD)
}

func (l *epollLoop) add(c *epollConn) {
	c.reach(open)
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: readable, Fd: int32(c.fd)}); err != nil {
		l.server.Rejected()
		l.server.Warn("cannot serve a connection", c.session, err)
		c.close()
	}
}

func address[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
