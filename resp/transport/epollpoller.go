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

// watch has wait tell of these events of a descriptor.
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
