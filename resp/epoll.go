//go:build linux

package resp

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	multiplexing = "epoll" // as INFO tells it

	readSize  = 64 << 10 // of one read, shared by the connections of a loop
	maxEvents = 256

	// Edge-triggered: after a read that does not fill the buffer the socket is empty, and epoll need not look at it again
	// in the next round, which with recv and send in place of read and write saves 6 % of a command's CPU at -P 1.
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	ended    = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR // the last event of a connection's input
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
	srv    *Server
	epoll  int
	wakeFD int
	spare  bool // there are processors that run no loop
	buf    []byte
	events []unix.EpollEvent
	conns  []*epollConn // by descriptor
	unread []*epollConn // may have more to read than their last read took
	again  []*epollConn // those of the round before
	dirty  []*epollConn // have output that no write has been tried for
	ended  []*epollConn // to be closed after it
	free   [][]byte     // output buffers between uses
	naps   naps
	chores []func() (more bool) // what is done between the rounds, a step of each

	count  atomic.Int64 // connections, for balance
	signal atomic.Bool  // the wake descriptor has been written to
	mu     sync.Mutex
	inbox  []*epollConn         // new, woken and closed ones
	asked  []func() (more bool) // chores to take over
	stop   bool
}

// epollConn is the Transport of one connection. All but the atomics belong to its loop.
type epollConn struct {
	loop    *epollLoop
	session *Session
	fd      int

	out      []byte // replies that have not been written, from sent on
	sent     int
	fresh    int // where in out this round's replies begin, while they wait for the disk
	isDirty  bool
	isUnread bool
	waiting  bool // for the socket to take more
	atEnd    bool // no event will follow: read until the end is met
	gone     bool
	peerGone bool
	napTrial uint32

	inInbox    bool // guarded by loop.mu
	added      bool // to the epoll set
	closing    atomic.Bool
	progressNS int64
}

func newEpollLoop(srv *Server) (*epollLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l := &epollLoop{srv: srv, epoll: epoll, wakeFD: wake, spare: runtime.GOMAXPROCS(0) > int(srv.cfg.ioThreads.Get()), buf: make([]byte, readSize), events: make([]unix.EpollEvent, maxEvents)}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		unix.Close(epoll)
		unix.Close(wake)
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	return l, nil
}

func (l *epollLoop) run() {
	for {
		n, err := l.wait()
		if err != nil {
			l.srv.log.Error("epoll_wait failed", "error", err)
			return
		}
		woken := false
		if l.srv.synchronous {
			l.srv.persist.Begin()
		}
		l.unread, l.again = l.again[:0], l.unread
		for _, c := range l.again {
			c.isUnread = false
			c.read()
		}
		for i := range n {
			ev := &l.events[i]
			if int(ev.Fd) == l.wakeFD {
				woken = true
				continue
			}
			c := l.conns[ev.Fd]
			if c == nil {
				continue
			}
			if ev.Events&unix.EPOLLOUT != 0 && !c.isDirty {
				c.flush()
			}
			if ev.Events&^unix.EPOLLOUT != 0 {
				c.atEnd = c.atEnd || ev.Events&ended != 0
				c.read()
			}
		}
		stop := woken && l.handleInbox()
		l.commit()
		for _, c := range l.dirty {
			c.isDirty = false
			if !c.gone {
				c.flush()
			}
		}
		l.dirty = l.dirty[:0]
		for _, c := range l.ended {
			c.linger()
		}
		l.ended = l.ended[:0]
		if stop {
			l.closeAll()
			return
		}
		if len(l.chores) > 0 {
			l.chores = slices.DeleteFunc(l.chores, func(step func() (more bool)) bool { return !step() })
			// Who was just answered may be waiting for this processor, which the kernel would not give it before its next tick.
			_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
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
	if !l.srv.synchronous {
		return
	}
	err := l.srv.persist.Commit()
	for _, c := range l.dirty {
		if !c.gone {
			c.out = append(c.out[:c.fresh], c.session.committed(c.out[c.fresh:], err)...)
		}
	}
}

// wait returns events, and sleeps until there are any.
//
// Where there is a processor more than loops, which runs what else there is to run, the loop sleeps and naps behind the
// back of Go's scheduler, for a millisecond at most: the scheduler would take the processor away from a thread that blocks
// for 20 µs, and its monitor, which does so, would look every 20 µs again; that was 8 % of all CPU at one command a packet.
func (l *epollLoop) wait() (int, error) {
	if len(l.unread) > 0 || len(l.chores) > 0 {
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

// handleInbox takes in, serves and closes what other goroutines asked for. It reports whether the loop is to end.
func (l *epollLoop) handleInbox() (stop bool) {
	var count [8]byte
	_, _ = unix.Read(l.wakeFD, count[:])
	l.signal.Store(false) // after the read, which may take the count of an ask that comes in between, and before the inbox is taken
	l.mu.Lock()
	inbox := l.inbox
	l.inbox = nil
	l.chores, l.asked = append(l.chores, l.asked...), nil
	stop = l.stop
	for _, c := range inbox {
		c.inInbox = false
	}
	l.mu.Unlock()
	for _, c := range inbox {
		switch {
		case c.gone:
		case !c.added:
			l.add(c)
		case c.closing.Load():
			c.lingerIfClosing() // and not linger, which would send what the disk does not have yet
		default:
			c.session.Serve(nil)
			c.lingerIfClosing()
		}
	}
	return stop
}

func (l *epollLoop) closeAll() {
	for _, c := range l.conns {
		if c != nil {
			c.flush()
			c.close()
		}
	}
	unix.Close(l.epoll)
	unix.Close(l.wakeFD)
}

func (l *epollLoop) add(c *epollConn) {
	c.added = true
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: readable, Fd: int32(c.fd)}); err != nil {
		l.srv.log.Warn("cannot serve a connection", "client", c.session.client.addr, "error", err)
		c.close()
		return
	}
	if c.closing.Load() {
		c.close()
	}
}

// ask puts a connection into the loop's inbox.
func (l *epollLoop) ask(c *epollConn) {
	l.mu.Lock()
	if c != nil && !c.inInbox {
		c.inInbox = true
		l.inbox = append(l.inbox, c)
	}
	l.mu.Unlock()
	if l.signal.CompareAndSwap(false, true) {
		_, _ = unix.Write(l.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (c *epollConn) read() {
	if c.gone || c.isUnread {
		return
	}
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(c.fd), uintptr(address(c.loop.buf)), readSize, 0, 0, 0)
	switch {
	case errno == syscall.EAGAIN:
		return
	case errno == syscall.EINTR:
	case errno != 0 || n == 0:
		if c.isDirty { // its replies leave first, at the end of the round
			c.peerGone = true
			c.loop.ended = append(c.loop.ended, c)
			return
		}
		c.flush()
		c.close()
		return
	case c.closing.Load(): // what a connection that ends still sends is of no interest
	default:
		c.loop.naps.served(&c.napTrial)
		c.session.Serve(c.loop.buf[:n])
		c.lingerIfClosing()
	}
	if n == readSize || c.atEnd || errno == syscall.EINTR {
		c.isUnread = true
		c.loop.unread = append(c.loop.unread, c)
	}
}

// Send keeps replies for the end of the round, or writes them if they are many.
func (c *epollConn) Send(p []byte) int {
	if c.gone {
		return 0
	}
	if c.out == nil {
		if last := len(c.loop.free) - 1; last >= 0 {
			c.out, c.loop.free = c.loop.free[last], c.loop.free[:last]
		}
	}
	if !c.isDirty {
		c.fresh = len(c.out)
	}
	c.out = append(c.out, p...)
	if len(c.out)-c.sent >= flushAt && !c.waiting && !c.loop.srv.synchronous {
		c.flush()
	} else if !c.isDirty && (!c.waiting || c.loop.srv.synchronous) {
		c.isDirty = true
		c.loop.dirty = append(c.loop.dirty, c)
	}
	return len(c.out) - c.sent
}

// flush writes what the socket takes, and has the loop wait for it to take more if it must.
func (c *epollConn) flush() {
	for c.sent < len(c.out) {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(address(c.out[c.sent:])), uintptr(len(c.out)-c.sent), unix.MSG_NOSIGNAL, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno == syscall.EAGAIN {
			c.await(true)
			break
		}
		if errno != 0 {
			c.close()
			return
		}
		c.sent += int(n)
		if c.waiting || c.closing.Load() {
			c.progressNS = c.loop.srv.clock()
		}
	}
	if c.sent == len(c.out) {
		if c.out != nil {
			if cap(c.out) <= 2*flushAt && len(c.loop.free) < 64 {
				c.loop.free = append(c.loop.free, c.out[:0])
			}
			c.out, c.sent = nil, 0
		}
		c.await(false)
		if c.closing.Load() {
			c.close()
			return
		}
	} else if c.sent > 1<<20 {
		c.out = append(c.out[:0], c.out[c.sent:]...)
		c.sent = 0
	}
	if unsent := int64(len(c.out) - c.sent); unsent != c.session.client.unsent.Load() {
		c.session.client.unsent.Store(unsent)
	}
}

// await turns on or off that the loop hears when the socket takes more.
func (c *epollConn) await(on bool) {
	if c.waiting == on {
		return
	}
	c.waiting = on
	events := uint32(readable)
	if on {
		events |= unix.EPOLLOUT
	}
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

func (c *epollConn) Close() {
	if c.closing.CompareAndSwap(false, true) {
		c.loop.ask(c)
	}
}

func (c *epollConn) Wake() { c.loop.ask(c) }

// lingerIfClosing begins to close a connection that is to be closed, at the end of the round if its replies still wait.
func (c *epollConn) lingerIfClosing() {
	switch {
	case !c.closing.Load():
	case c.isDirty:
		c.loop.ended = append(c.loop.ended, c)
	default:
		c.linger()
	}
}

// linger closes a connection once its replies have left, or when its peer has read nothing for a while.
func (c *epollConn) linger() {
	if c.gone {
		return
	}
	unwanted := c.session.end == atOnce || c.session.client.killed.Load()
	if !unwanted {
		c.flush()
		if c.gone {
			return
		}
		unwanted = c.peerGone
	}
	if unwanted || c.loop.srv.clock()-c.progressNS > lingerNS {
		c.close()
		return
	}
	time.AfterFunc(lingerNS, c.Wake)
}

// close ends the connection here and now.
func (c *epollConn) close() {
	if c.gone {
		return
	}
	c.gone = true
	c.loop.conns[c.fd] = nil
	unix.Close(c.fd) // which takes it out of the epoll set as well
	c.out = nil
	c.loop.count.Add(-1)
	c.session.Closed()
}

func address[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
