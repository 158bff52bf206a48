package harness

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"celld/internal/celldtest"
)

// SocketDir is a folder with a path short enough for sockets in it.
func SocketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "celld-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// NeedIPv6 skips the test, or fails it in CI, where this machine has no ::1.
func NeedIPv6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		celldtest.Missing(t, "no IPv6 loopback: %v", err)
	}
	l.Close()
}

// firstPort is where FreePort begins in this process, and triedPorts how many it has tried.
var (
	firstPort  = rand.Int64N(20_000)
	triedPorts atomic.Int64
)

// FreePort is a port that is free and stays so, for the tests in which two processes must agree on one: the kernel gives
// others out, on Linux 32768 to 60999, and no other test is given this one for a long while.
func FreePort(t testing.TB) string {
	t.Helper()
	for {
		const step = 7_919 // a prime, by which all ports come, high and low ones in turn
		port := strconv.FormatInt(10_000+(firstPort+step*triedPorts.Add(1))%20_000, 10)
		l, err := net.Listen("tcp", ":"+port)
		if err == nil {
			l.Close()
			return port
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

// HostPort splits an address for tools that want the two apart.
func HostPort(addr string) (host, port string) {
	i := strings.LastIndexByte(addr, ':')
	return strings.Trim(addr[:i], "[]"), addr[i+1:]
}
