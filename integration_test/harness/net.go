package harness

import (
	"net"
	"os"
	"strings"
	"testing"
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
		Missing(t, "no IPv6 loopback: %v", err)
	}
	l.Close()
}

// FreePort is a port that was free just now; for the few tests in which two processes must agree on one.
func FreePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port := HostPort(l.Addr().String())
	return port
}

// HostPort splits an address for tools that want the two apart.
func HostPort(addr string) (host, port string) {
	i := strings.LastIndexByte(addr, ':')
	return strings.Trim(addr[:i], "[]"), addr[i+1:]
}
