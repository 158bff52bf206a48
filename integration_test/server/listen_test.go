package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"celld/integration_test/harness"
)

func TestListen(t *testing.T) {
	t.Parallel()
	serves := func(t *testing.T, srv *harness.Server, want int) {
		t.Helper()
		if len(srv.Addrs) != want {
			t.Fatalf("it listens on %q, want %d addresses", srv.Addrs, want)
		}
		for _, addr := range srv.Addrs {
			if got := harness.Dial(t, addr).Throttle(addr, "15", "30", "60"); got != [5]int64{0, 16, 15, -1, 2} {
				t.Errorf("%s: %v", addr, got)
			}
		}
	}
	t.Run("IPv6", func(t *testing.T) {
		t.Parallel()
		harness.NeedIPv6(t)
		srv := harness.Start(t, "--bind", "::1")
		serves(t, srv, 1)
		if !strings.HasPrefix(srv.Addr, "[::1]:") {
			t.Errorf("it listens on %s", srv.Addr)
		}
	})
	t.Run("several, separated by commas", func(t *testing.T) {
		t.Parallel()
		serves(t, harness.Start(t, "--bind", "127.0.0.1,127.0.0.2"), 2)
	})
	t.Run("several flags", func(t *testing.T) {
		t.Parallel()
		harness.NeedIPv6(t)
		serves(t, harness.Start(t, "--bind", "127.0.0.1", "--bind", "::1", "--bind", "127.0.0.3"), 3)
	})
	t.Run("one that may be missing", func(t *testing.T) {
		t.Parallel()
		serves(t, harness.Start(t, "--bind", "127.0.0.1,-192.0.2.1"), 1)
	})
	t.Run("one that is missing", func(t *testing.T) {
		t.Parallel()
		_, stderr, code := harness.RunToEnd(t, nil, "--port", "0", "--bind", "192.0.2.1")
		oneLine(t, stderr, code, 1, "192.0.2.1")
	})
	t.Run("only loopback by default", func(t *testing.T) {
		t.Parallel()
		for _, addr := range harness.Start(t).Addrs {
			if host, _ := harness.HostPort(addr); !net.ParseIP(host).IsLoopback() {
				t.Errorf("it listens on %s", addr)
			}
		}
	})
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(harness.SocketDir(t), "celld.sock")
	srv := harness.Spec{Flags: []string{"--unixsocket", path, "--unixsocketperm", "770"}, Dies: true}.Start(t)
	if got := srv.UnixPath(); got != path {
		t.Fatalf("it listens on %s", got)
	}
	if got := harness.Dial(t, "unix:"+path).Throttle("k", "15", "30", "60"); got != [5]int64{0, 16, 15, -1, 2} {
		t.Errorf("CL.THROTTLE: %v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o770 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	if _, stderr, code := harness.RunToEnd(t, nil, "ping", "--unixsocket", path, "--port", "0"); code != 0 {
		t.Errorf("celld ping: %d, %s", code, stderr)
	}
	if _, stderr, code := harness.RunToEnd(t, nil, "--port", "0", "--unixsocket", path); code != 1 {
		t.Errorf("a second server on the socket of a living one: %d, %s", code, stderr)
	}

	srv.Cmd.Process.Signal(syscall.SIGKILL) // and the socket's file stays behind
	<-srv.Exited
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	again := harness.Start(t, "--unixsocket", path)
	if got := harness.Dial(t, "unix:"+again.UnixPath()).Do("PING"); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	again.Cmd.Process.Signal(syscall.SIGTERM)
	again.Wait(0)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket's file after an end in order: %v", err)
	}

	if err := os.WriteFile(path, []byte("not a socket"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := harness.RunToEnd(t, nil, "--port", "0", "--unixsocket", path)
	oneLine(t, stderr, code, 1, path)
	if text, err := os.ReadFile(path); err != nil || string(text) != "not a socket" {
		t.Errorf("a file that was no socket: %q, %v", text, err)
	}
}

// TestUnixSocketBesideTCP serves both.
func TestUnixSocketBesideTCP(t *testing.T) {
	t.Parallel()
	path := filepath.Join(harness.SocketDir(t), "celld.sock")
	port := harness.FreePort(t)
	srv := harness.Start(t, "--unixsocket", path, "--port", port)
	a, b := harness.Dial(t, srv.Addr), harness.Dial(t, "unix:"+srv.UnixPath())
	a.Throttle("k", "15", "30", "6000")
	if got := b.Throttle("k", "15", "30", "6000"); got[2] != 14 {
		t.Errorf("the same key by the other way: %v", got)
	}
}
