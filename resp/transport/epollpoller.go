//go:build linux

package transport

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxEvents = 256

	// Edge-triggered: a read that does not fill the buffer has emptied the socket, and epoll does not report it again in the
	// next round. Together with recv and send in place of read and write, this saves 6 % of a command's CPU at -P 1.
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// poller tells a loop what has happened on its descriptors.
type poller struct {
	epoll  int
	events []unix.EpollEvent
	spare  bool // there are processors that run no loop
	naps   naps
}

// watch adds these events of a descriptor to those that wait returns.
func (p *poller) watch(fd int, events uint32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// await turns on or off the event that a socket takes more.
func (p *poller) await(fd int, on bool) error {
	events := uint32(readable)
	if on {
		events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// wait returns events, and sleeps until there are any, unless the loop is busy.
//
// If there are more processors than loops, other goroutines can run there. Then the loop sleeps and naps without telling Go's
// scheduler, for a millisecond at most. Otherwise the scheduler takes the processor away from a thread that blocks for 20 µs,
// and its monitor looks for such threads every 20 µs: 8 % of all CPU at one command a packet.
func (p *poller) wait(busy bool) (int, error) {
	if busy {
		return p.poll(0)
	}
	if p.naps.due() {
		if n, err := p.poll(0); n != 0 || err != nil {
			return n, err
		}
		p.nap()
		n, err := p.poll(0)
		p.naps.gathered(n)
		if n != 0 || err != nil {
			return n, err
		}
	}
	if p.spare {
		if n, err := p.poll(1); n != 0 || err != nil {
			return n, err
		}
	}
	for {
		n, err := unix.EpollWait(p.epoll, p.events, -1)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (p *poller) poll(ms int) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(address(p.events)), maxEvents, uintptr(ms), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EINTR:
		return 0, nil
	}
	return 0, errno
}

func (p *poller) nap() {
	nap := unix.Timespec{Nsec: napNS}
	if p.spare {
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0)
	} else {
		_ = unix.Nanosleep(&nap, nil)
	}
}

func address[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// naps decides when an event loop naps.
//
// A loop under load from many connections that has nothing to do will soon have more to do. It naps for some 60 µs, whatever
// arrives. Then it finds several batches, where it would have been woken for the first; each wake-up costs 2 µs and more. At
// -P 1 and 50 connections naps reduced a command from 7.7 to 6.4 µs and p99 from 0.55 to 0.45 ms, as fewer, fuller rounds
// answer the same load.
//
// A nap pays if it gathers at least two batches, from at most half of the connections. If all of them wait for answers, a nap
// only makes them wait longer. The loop tries a nap once in napEvery batches, and goes on as long as naps pay.
//
// Other lengths and rules were worse:
//
//   - No naps, or naps of 150 or 200 µs, -P 1 and 50 connections, medians of five runs beside each other: 8.80, 8.23 and 8.05 µs a
//     command over TCP, not 7.89 (PING of redis-server: 8.56); 5.91, 5.10 and 5.41 over a unix socket, not 4.87 (PING: 5.08).
//     Throughput was 2 to 8 % less, and p99 the same within the noise.
//   - Nap after every round, even if there is work: p99 0.68 ms at 60 µs.
//   - Nap as long as a nap gathers three batches, however few connections there are: 4 connections that each wait for their
//     answer made 44,000 requests a second, not 75,000.
//   - Lock the loop to its thread, to set how exactly the thread is woken: one connection that waits for each answer cost
//     28.5 µs a command, not 21.5.
type naps struct {
	pay      bool // the last nap did
	batches  int  // since the last trial
	distinct int  // connections that these batches came from
	active   int  // distinct at the last trial
	trial    uint32
}

const (
	napNS    = 20_000 // to which the kernel adds up to 50 µs, its timer slack
	napEvery = 64
)

// served counts a batch. of is the trial in which its connection was last counted.
func (n *naps) served(of *uint32) {
	n.batches++
	if *of != n.trial {
		*of = n.trial
		n.distinct++
	}
}

// due says whether a loop that has nothing to do may nap.
func (n *naps) due() bool {
	if n.batches < napEvery {
		return n.pay
	}
	n.active, n.distinct, n.batches = n.distinct, 0, 0
	n.trial++
	return true
}

// gathered records how many connections had something to read after a nap.
func (n *naps) gathered(connections int) {
	n.pay = 2 <= connections && connections <= n.active/2
}
