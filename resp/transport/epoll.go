//go:build linux

package transport

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	flushAt = 64 << 10 // a connection with so many reply bytes writes before the end of the round

	readSize  = 64 << 10 // bytes of a loop's read buffer, which its connections share
	maxEvents = 256

	// roundBytes bounds what a round reads where replies wait for the disk. Memory holds its changes until then, about six
	// times over. 2 MB are 50,000 calls of CL.THROTTLE.
	roundBytes = 2 << 20

	// A round looks at those who came, are woken or are killed for as long as its reads took, and for a millisecond at least. When 10,000
	// callers wait for one key, and it is deleted, their replies take 50 ms. A millisecond alone was not enough: while the loop was busy,
	// connections that came and went piled up until maxclients were there.
	leastLooksNS = 1_000_000
	// looksShareNS is what the reads of such a round leave of the 5 ms for which sessions keep a loop.
	looksShareNS = 2_500_000
	wokenStep    = 16 // at a time
	// wokenReplies is how many of them may get replies in a round: to send one takes 6 µs, and as many come from one epoll_wait.
	wokenReplies = maxEvents

	// Edge-triggered: a read that does not fill the buffer has emptied the socket, and epoll does not report it again in the
	// next round. Together with recv and send in place of read and write, this saves 6 % of a command's CPU at -P 1.
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	broken   = unix.EPOLLHUP | unix.EPOLLERR // nothing can be read or written any more
	ended    = unix.EPOLLRDHUP | broken      // the last event of a connection's input
)

// On Linux, event loops on epoll carry connections. celld has its own, as most of a decision's time is spent here: at one
// command a packet, 86 % of it in the kernel. gnet was slower in the same run: 5.0 µs a command against 4.4 at -P 1, and 0.45
// against 0.39 at -P 16. It writes to each connection as soon as that is answered, and Go's scheduler sees each of its reads
// and writes as a blocking system call. Its acceptor also ends the process when descriptors run out.

// epollLoop is an event loop: one goroutine that reads, answers and writes for its connections.
//
// A round answers all connections that have something to read before it writes to any, as Redis does. So peers get their
// replies together and send their next commands together, which saves both sides wake-ups.
type epollLoop struct {
	server     Server
	synced     bool // rounds are committed
	epoll      int
	wakeFD     int
	spare      bool // there are processors that run no loop
	buf        []byte
	plain      []byte // what TLS makes of buf; nil: no connection has had TLS yet
	events     []unix.EpollEvent
	conns      []*epollConn // by descriptor
	taken      int          // bytes read in this round
	late       []*epollConn // left for the next round, as taken has reached roundBytes
	unread     []*epollConn // may have more to read after their last read
	roundNS    int64        // see Conn.RoundNS
	queue      []*epollConn // to be read in this round
	next       int          // in queue
	woken      []*epollConn // from the inbox, to be looked at in this round
	looked     int          // of woken, how many were
	dirty      []*epollConn // have output of this round
	ended      []*epollConn // to be closed when that is written
	free       [][]byte     // output buffers between uses
	naps       naps
	left       bool   // meanwhile has ended the round early
	stopping   bool   // closeAll follows
	otherBuf   []byte // for reads in meanwhile
	otherPlain []byte
	chores     []chore // one step of each is done between two rounds

	count  atomic.Int64 // connections; new ones go to the loop with the fewest
	signal atomic.Bool  // the wake descriptor has been written to
	mu     sync.Mutex
	inbox  []*epollConn // new, woken and closed ones
	asked  []chore      // new ones
	stop   bool
	closed bool // the wake descriptor is closed; its number may belong to another file

	draining  bool  // the server stops
	commitErr error // of the round's changes

	stands    atomic.Int64 // the number of the commit that the loop's goroutine stands in; 0: none, or another goroutine has taken over
	commits   int64
	ahead     *standing    // a round whose commit another goroutine stands in; nil: none
	nextAhead *standing    // what the next of these will be
	kept      []*epollConn // have written since, and wait for the next commit
	putOff    []*epollConn // are not served until then
	keptBytes int          // bytes read in the rounds of those in kept

	over chan struct{} // closed when the loop has ended
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
	l := &epollLoop{server: t.server, synced: t.synced, epoll: epoll, wakeFD: wake, spare: spare,
		buf: make([]byte, readSize), events: make([]unix.EpollEvent, maxEvents), nextAhead: &standing{}, over: make(chan struct{})}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		unix.Close(epoll)
		unix.Close(wake)
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	return l, nil
}

func (l *epollLoop) run() {
	defer l.escaped()
	l.rounds()
}

// rounds returns when the loop has ended, or another goroutine has taken it over.
func (l *epollLoop) rounds() {
	for {
		n, err := l.wait()
		if err != nil { // nobody would serve its connections
			l.server.Fatal("epoll_wait failed", "error", err)
			return
		}
		if l.synced {
			l.server.Begin()
		}
		l.land()
		l.serve(n)
		if !l.commit(!l.stopping) || !l.finish() { // who writes all the time to a slow disk does not keep a loop from ending
			return
		}
	}
}

// finish is what follows the commit of a round. It returns false when the loop has ended.
func (l *epollLoop) finish() bool {
	l.send()
	if l.stopping && l.ahead == nil {
		l.closeAll()
		close(l.over)
		return false
	}
	if len(l.chores) > 0 {
		l.doChores(false)
		// A peer that was just answered may wait for this processor. Without a yield the kernel gives it none before its next tick.
		_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return true
}

// serve answers what the last round has left, n events, and what other goroutines have asked for.
func (l *epollLoop) serve(n int) {
	beganNS := l.server.NowNS()
	l.roundNS = beganNS
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
	if len(l.woken) > 0 {
		l.roundNS -= looksShareNS
	}
	for len(l.queue) > l.next { // meanwhile, in a step, may go through the rest of queue and woken
		c := l.queue[l.next]
		l.next++
		c.queued = false
		l.do(c, (*epollConn).read)
	}
	l.queue, l.next = l.queue[:0], 0
	mostDirty, looksNS := len(l.dirty)+wokenReplies, int64(0) // when they begin
	for len(l.woken) > l.looked && len(l.dirty) < mostDirty {
		if l.looked%wokenStep == 0 && !l.stopping {
			nowNS := l.server.NowNS()
			if looksNS == 0 {
				looksNS = nowNS
			}
			if nowNS-looksNS > max(leastLooksNS, looksNS-beganNS) {
				break
			}
		}
		c := l.woken[l.looked]
		l.looked++
		l.do(c, (*epollConn).look)
	}
	rest := copy(l.woken, l.woken[l.looked:])
	clear(l.woken[rest:])
	l.woken, l.looked = l.woken[:rest], 0
}

// send writes the replies of a round, and begins to close connections that have ended in it.
func (l *epollLoop) send() {
	for _, c := range l.dirty {
		c.dirty = false
		if c.at() < gone {
			l.do(c, (*epollConn).flush)
		}
	}
	l.dirty = l.dirty[:0]
	l.ended = slices.DeleteFunc(l.ended, func(c *epollConn) bool {
		if c.held && c.at() < cut {
			return false
		}
		l.do(c, (*epollConn).linger)
		return true
	})
}

// meanwhile is a round within another, for all connections but c, which runs a long command. Where replies wait for the disk,
// it first has the outer round committed, and c is in no round until resume, so that nobody waits for it. If c has already made
// changes (wrote), it cannot leave its round, so nobody is served.
func (l *epollLoop) meanwhile(c *epollConn, wrote bool) {
	defer l.doChores(true)
	if l.synced && !l.left {
		if wrote {
			l.stopping = l.takeInbox() || l.stopping
			return
		}
		l.commitAside(c)
		l.left = true
	}
	l.land()
	n, err := l.poll(0)
	if err != nil {
		return // the loop's own wait returns it, too
	}
	buf, plain := l.buf, l.plain // still hold input of c
	if l.buf, l.plain = l.otherBuf, l.otherPlain; l.buf == nil {
		l.buf = make([]byte, readSize)
	}
	l.serve(n)
	if l.synced {
		if l.letGo(); len(l.dirty) > 0 { // calls that waited have been granted, or have written while the disk was slow
			l.server.Begin()
			l.commitAside(c)
		}
	}
	l.send()
	l.buf, l.otherBuf = buf, l.buf
	l.plain, l.otherPlain = plain, l.plain
	c.readOn() // its events were ignored
}

// resume joins a round again after meanwhile.
func (l *epollLoop) resume() {
	if l.left {
		l.left = false
		l.server.Begin()
	}
}

// do calls step for a connection. A panic in it ends that connection alone.
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

// escaped ends the process after a panic outside of do: nobody would serve the loop's connections.
func (l *epollLoop) escaped() {
	if cause := recover(); cause != nil {
		l.server.Fatal("panic in an event loop, cannot go on", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	}
}

// wait returns events, and sleeps until there are any.
//
// If there are more processors than loops, other goroutines can run there. Then the loop sleeps and naps without telling Go's
// scheduler, for a millisecond at most. Otherwise the scheduler takes the processor away from a thread that blocks for 20 µs,
// and its monitor looks for such threads every 20 µs: 8 % of all CPU at one command a packet.
func (l *epollLoop) wait() (int, error) {
	if len(l.unread)+len(l.late)+len(l.woken) > 0 || len(l.chores) > 0 {
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
		l.server.Rejected(nil) // Warn says whose it is
		l.server.Warn("cannot serve a connection", c.session, err)
		c.close()
		return
	}
	if c.secure != nil {
		c.decrypt(nil)
	}
}

// borrow returns an empty buffer for output.
func (l *epollLoop) borrow() (buf []byte) {
	if last := len(l.free) - 1; last >= 0 {
		buf, l.free = l.free[last], l.free[:last]
	}
	return buf
}

func (l *epollLoop) giveBack(buf []byte) {
	if buf != nil && cap(buf) <= 2*flushAt && len(l.free) < 64 {
		l.free = append(l.free, buf[:0])
	}
}

func address[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
