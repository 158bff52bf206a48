//go:build linux

package transport

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	readSize = 64 << 10 // bytes of a loop's read buffer, which its connections share

	// roundBytes bounds what a round reads where replies wait for the disk. Memory holds its changes until then, about six
	// times over. 2 MB are 50,000 calls of CL.THROTTLE.
	roundBytes = 2 << 20

	// A round looks at connections that came, are woken or are killed for as long as its reads took, and for a millisecond at least. When
	// 10,000 callers wait for one key, and it is deleted, their replies take 50 ms. A millisecond alone was not enough: while the loop was
	// busy, connections that came and went piled up until maxclients were there.
	leastLooksNS = 1_000_000
	// looksShareNS is the part of the 5 ms for which sessions keep a loop that the reads of such a round leave.
	looksShareNS = 2_500_000
	wokenStep    = 16 // at a time
	// wokenReplies is how many of them may get replies in a round: to send one takes 6 µs, and as many come from one epoll_wait.
	wokenReplies = maxEvents

	broken = unix.EPOLLHUP | unix.EPOLLERR // nothing can be read or written any more
	ended  = unix.EPOLLRDHUP | broken      // the last event of a connection's input
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
	server Server
	synced bool // rounds are committed
	poller
	inbox
	roundWork
	disk     committer
	input    buffers
	other    buffers // for reads in meanwhile
	spares   spares
	chores   []chore       // one step of each is done between two rounds
	conns    []*epollConn  // by descriptor
	count    atomic.Int64  // connections; new ones go to the loop with the fewest
	left     bool          // serveOthers has ended the round early
	stopping bool          // closeAll follows
	draining bool          // the server stops
	over     chan struct{} // closed when the loop has ended
}

// buffers are the memory that a loop reads into. Its connections share it.
type buffers struct {
	sealed []byte // as it comes from the socket
	plain  []byte // what TLS makes of that; nil: no connection has had TLS yet
}

// roundWork is the work of a round, and the rest that it leaves to the next.
type roundWork struct {
	roundNS int64        // see Conn.RoundNS
	taken   int          // bytes read in this round
	queue   []*epollConn // to be read in this round
	next    int          // in queue
	late    []*epollConn // left for the next round, as taken has reached roundBytes
	unread  []*epollConn // may have more to read after their last read
	woken   []*epollConn // from the inbox, to be looked at in this round
	looked  int          // of woken, how many were
	dirty   []*epollConn // have output of this round
	ended   []*epollConn // to be closed when that is written
}

func newEpollLoop(t *Transport, spare bool) (*epollLoop, error) {
	l := &epollLoop{server: t.server, synced: t.synced, over: make(chan struct{})}
	l.disk = committer{loop: l, nextAhead: &standing{}}
	l.input.sealed = make([]byte, readSize)
	l.poller = poller{spare: spare, events: make([]unix.EpollEvent, maxEvents)}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	if l.wakeFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(l.epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if err := l.watch(l.wakeFD, unix.EPOLLIN); err != nil {
		l.close()
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
		n, err := l.wait(l.busy())
		if err != nil { // nobody would serve its connections
			l.server.Fatal("epoll_wait failed", "error", err)
			return
		}
		if l.synced {
			l.server.Begin()
			l.disk.land()
		}
		l.serve(n)
		if l.synced && !l.disk.commit(!l.stopping) { // a client that writes all the time to a slow disk does not keep a loop from ending
			return
		}
		if !l.finish() {
			return
		}
	}
}

// busy reports whether the loop has work before any event comes. A round that stood in Commit may have landed after this one looked for it:
// then this one has taken its post, and no event is left that tells of it.
func (l *epollLoop) busy() bool {
	return len(l.unread)+len(l.late)+len(l.woken)+len(l.chores) > 0 || l.disk.ahead != nil && l.disk.ahead.landed.Load()
}

// finish does the work after the commit of a round. It returns false when the loop has ended.
func (l *epollLoop) finish() bool {
	l.send()
	if l.stopping && l.disk.ahead == nil {
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

// serve answers the rest of the last round, n events, and the posts of other goroutines.
func (l *epollLoop) serve(n int) {
	beganNS := l.server.NowNS()
	l.roundNS = beganNS
	l.queue = append(append(l.queue, l.late...), l.unread...)
	l.late, l.unread, l.taken = l.late[:0], l.unread[:0], 0
	for i := range n {
		l.notice(&l.events[i])
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
	l.look(beganNS)
}

// notice takes an event of epoll.
func (l *epollLoop) notice(ev *unix.EpollEvent) {
	if int(ev.Fd) == l.wakeFD {
		l.drainInbox()
		return
	}
	c := l.conns[ev.Fd]
	if c == nil {
		return
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

// look looks at the connections that were woken, as many as there is time for in a round that began at that instant.
func (l *epollLoop) look(beganNS int64) {
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

// serveOthers is a round within another, for all connections but c, which runs a long command. Where replies wait for the disk,
// it first commits the outer round, and c is in no round until resume, so that nobody waits for it. If c has already made
// changes (wrote), it cannot leave its round, so nobody is served.
func (l *epollLoop) serveOthers(c *epollConn, wrote bool) {
	defer l.doChores(true)
	if l.synced && !l.left {
		if wrote {
			l.drainInbox()
			return
		}
		l.disk.commitAside(c)
		l.left = true
	}
	if l.synced {
		l.disk.land()
	}
	n, err := l.poll(0)
	if err != nil {
		return // the loop's own wait returns it, too
	}
	l.input, l.other = l.other, l.input // which still holds input of c
	if l.input.sealed == nil {
		l.input.sealed = make([]byte, readSize)
	}
	l.serve(n)
	if l.synced {
		if l.disk.letGo(); len(l.dirty) > 0 { // calls that waited have been granted, or have written while the disk was slow
			l.server.Begin()
			l.disk.commitAside(c)
		}
	}
	l.send()
	l.input, l.other = l.other, l.input
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

// drainInbox takes the posts of other goroutines.
func (l *epollLoop) drainInbox() { l.woken, l.chores = l.inbox.drain(l.woken, l.chores) }

func (l *epollLoop) doChores(meanwhile bool) {
	l.chores = slices.DeleteFunc(l.chores, func(c chore) bool { return (c.meanwhile || !meanwhile) && !c.step() })
}

// closeAll closes all connections, and the loop's own descriptors.
func (l *epollLoop) closeAll() {
	for _, c := range l.conns {
		if c != nil {
			l.do(c, (*epollConn).flush)
			c.close()
		}
	}
	l.close()
}

func (l *epollLoop) close() {
	unix.Close(l.epoll)
	l.inbox.close()
}

func (l *epollLoop) add(c *epollConn) {
	c.reach(open)
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	if err := l.watch(c.fd, readable); err != nil {
		l.server.Rejected(nil) // Warn says whose it is
		l.server.Warn("cannot serve a connection", c.session, err)
		c.close()
		return
	}
	if c.secure != nil {
		c.decrypt(nil)
	}
}
