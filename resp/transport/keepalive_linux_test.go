package transport

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A TCP connection is probed when it is idle as long as its server says, and then three times at a third of that, of whole
// seconds and one at least.
func TestKeepAlive(t *testing.T) {
	for idle, want := range map[time.Duration][4]int{
		0:                 {0, 0, 0, 0},
		2 * time.Second:   {1, 2, 1, 3},
		300 * time.Second: {1, 300, 100, 3},
		301 * time.Second: {1, 301, 100, 3},
	} {
		c := &carried{}
		c.keepAlive = idle
		accepted := make(chan net.Conn, 1)
		c.listener = wrapping(func(conn net.Conn) net.Conn { accepted <- conn; return conn })
		c.start(t)
		dial(t, c.listen(t, "tcp")).ask("a\n", "a\n")
		raw, err := (<-accepted).(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var got [4]int
		_ = raw.Control(func(fd uintptr) {
			got[0], _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, syscall.SO_KEEPALIVE)
			for i, option := range []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
				if got[0] != 0 {
					got[1+i], _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
				}
			}
		})
		if got != want {
			t.Errorf("%v: %v, want %v", idle, got, want)
		}
	}
}
