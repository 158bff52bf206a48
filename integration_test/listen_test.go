package integration_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// socketDir is a folder with a path short enough for sockets in it.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "celld-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func hasIPv6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		missing(t, "no IPv6 loopback: %v", err)
	}
	l.Close()
}

func TestListen(t *testing.T) {
	t.Parallel()
	serves := func(t *testing.T, srv *server, want int) {
		t.Helper()
		if len(srv.addrs) != want {
			t.Fatalf("it listens on %q, want %d addresses", srv.addrs, want)
		}
		for _, addr := range srv.addrs {
			if got := dial(t, addr).throttle(addr, "15", "30", "60"); got != [5]int64{0, 16, 15, -1, 2} {
				t.Errorf("%s: %v", addr, got)
			}
		}
	}
	t.Run("IPv6", func(t *testing.T) {
		t.Parallel()
		hasIPv6(t)
		srv := start(t, "--bind", "::1")
		serves(t, srv, 1)
		if !strings.HasPrefix(srv.addr, "[::1]:") {
			t.Errorf("it listens on %s", srv.addr)
		}
	})
	t.Run("several, separated by commas", func(t *testing.T) {
		t.Parallel()
		serves(t, start(t, "--bind", "127.0.0.1,127.0.0.2"), 2)
	})
	t.Run("several flags", func(t *testing.T) {
		t.Parallel()
		hasIPv6(t)
		serves(t, start(t, "--bind", "127.0.0.1", "--bind", "::1", "--bind", "127.0.0.3"), 3)
	})
	t.Run("one that may be missing", func(t *testing.T) {
		t.Parallel()
		serves(t, start(t, "--bind", "127.0.0.1,-192.0.2.1"), 1)
	})
	t.Run("one that is missing", func(t *testing.T) {
		t.Parallel()
		_, stderr, code := runToEnd(t, nil, "--port", "0", "--bind", "192.0.2.1")
		oneLine(t, stderr, code, 1, "192.0.2.1")
	})
	t.Run("only loopback by default", func(t *testing.T) {
		t.Parallel()
		for _, addr := range start(t).addrs {
			if host, _ := hostPort(addr); !net.ParseIP(host).IsLoopback() {
				t.Errorf("it listens on %s", addr)
			}
		}
	})
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "celld.sock")
	srv := spec{flags: []string{"--unixsocket", path, "--unixsocketperm", "770"}, dies: true}.start(t)
	if got := srv.unixPath(); got != path {
		t.Fatalf("it listens on %s", got)
	}
	if got := dial(t, "unix:"+path).throttle("k", "15", "30", "60"); got != [5]int64{0, 16, 15, -1, 2} {
		t.Errorf("CL.THROTTLE: %v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o770 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	if _, stderr, code := runToEnd(t, nil, "ping", "--unixsocket", path, "--port", "0"); code != 0 {
		t.Errorf("celld ping: %d, %s", code, stderr)
	}
	if _, stderr, code := runToEnd(t, nil, "--port", "0", "--unixsocket", path); code != 1 {
		t.Errorf("a second server on the socket of a living one: %d, %s", code, stderr)
	}

	srv.cmd.Process.Signal(syscall.SIGKILL) // and the socket's file stays behind
	<-srv.exited
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	again := start(t, "--unixsocket", path)
	if got := dial(t, "unix:"+again.unixPath()).do("PING"); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	again.cmd.Process.Signal(syscall.SIGTERM)
	again.wait(0)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket's file after an end in order: %v", err)
	}

	if err := os.WriteFile(path, []byte("not a socket"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := runToEnd(t, nil, "--port", "0", "--unixsocket", path)
	oneLine(t, stderr, code, 1, path)
	if text, err := os.ReadFile(path); err != nil || string(text) != "not a socket" {
		t.Errorf("a file that was no socket: %q, %v", text, err)
	}
}

// TestUnixSocketBesideTCP serves both.
func TestUnixSocketBesideTCP(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "celld.sock")
	port := freePort(t)
	srv := start(t, "--unixsocket", path, "--port", port)
	a, b := dial(t, srv.addr), dial(t, "unix:"+srv.unixPath())
	a.throttle("k", "15", "30", "60")
	if got := b.throttle("k", "15", "30", "60"); got[2] != 14 {
		t.Errorf("the same key by the other way: %v", got)
	}
}

// freePort is a port that was free just now; for the few tests in which two processes must agree on one.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port := hostPort(l.Addr().String())
	return port
}
