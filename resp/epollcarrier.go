//go:build linux

package resp

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// epollCarrier spreads connections over event loops.
type epollCarrier struct {
	srv     *Server
	loops   []*epollLoop
	running sync.WaitGroup
}

func newCarrier(srv *Server) (carrier, error) {
	e := &epollCarrier{srv: srv}
	for range srv.cfg.ioThreads.Get() {
		l, err := newEpollLoop(srv)
		if err != nil {
			e.stop()
			return nil, err
		}
		e.loops = append(e.loops, l)
		e.running.Go(l.run)
	}
	return e, nil
}

func (e *epollCarrier) carry(conn net.Conn) {
	loop := e.loops[0]
	for _, l := range e.loops {
		if l.count.Load() < loop.count.Load() {
			loop = l
		}
	}
	c := &epollConn{loop: loop}
	if c.session = e.srv.admitConn(conn, c); c.session == nil {
		return
	}
	var err error
	if c.fd, err = detach(conn); err != nil {
		e.srv.log.Warn("cannot serve a connection", "client", c.session.client.addr, "error", err)
		c.session.Closed()
		return
	}
	c.session.client.fd.Store(int64(c.fd))
	c.progressNS = e.srv.clock()
	loop.count.Add(1)
	loop.ask(c)
}

// background has the first loop do a step after each round, and one after the other while there is nothing else to do. In
// a goroutine of its own, with short locks, the same work kept others waiting for up to 7 ms: a loop that finds a lock taken
// sleeps, and to be woken while another thread has the processor takes until the kernel's next tick.
func (e *epollCarrier) background(step func() (more bool)) {
	l := e.loops[0]
	l.mu.Lock()
	l.asked = append(l.asked, step)
	l.mu.Unlock()
	l.ask(nil)
}

func (e *epollCarrier) stop() {
	for _, l := range e.loops {
		l.mu.Lock()
		l.stop = true
		l.mu.Unlock()
		l.ask(nil)
	}
	e.running.Wait()
}

// detach takes a connection's socket from Go's own poller, and returns its descriptor, non-blocking.
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
