package transport

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// closes closes a listener at the test's end.
func closes(t *testing.T, ln net.Listener, err error) net.Listener {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// Each way to name a host is listened on.
func TestListenTCP(t *testing.T) {
	hosts := map[string]string{"127.0.0.1": "127.0.0.1", "localhost": "", "*": "0.0.0.0"}
	if ln, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		ln.Close()
		hosts["::1"], hosts["::*"] = "::1", "::"
	}
	for host, want := range hosts {
		ln, err := ListenTCP(host, 0)
		addr := closes(t, ln, err).Addr().(*net.TCPAddr)
		if dial(t, addr); want != "" && addr.IP.String() != want {
			t.Errorf("%s is %v", host, addr)
		}
	}
}

// IPv6, where the system has it, can share a port with IPv4. The kernel gives out ports that are free for IPv6 alone, so another
// process may have that of a try.
func TestIPv4AndIPv6ShareAPort(t *testing.T) {
	for try := 1; ; try++ {
		six, err := ListenTCP("::*", 0)
		if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			return
		}
		four, err := ListenTCP("*", closes(t, six, err).Addr().(*net.TCPAddr).Port)
		if errors.Is(err, syscall.EADDRINUSE) && try < 100 {
			continue
		}
		closes(t, four, err)
		return
	}
}

// An address that cannot be listened on gets an error that names it and the cause, without Go's "listen tcp …: bind:".
func TestListenErrors(t *testing.T) {
	ln, err := ListenTCP("127.0.0.1", 0)
	taken := closes(t, ln, err).Addr()
	_, err = ListenTCP("127.0.0.1", taken.(*net.TCPAddr).Port)
	want := "listen on " + taken.String() + ": address already in use"
	if err == nil || err.Error() != want || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err = ListenTCP("127.0.0.1", 1<<16); err == nil || !strings.HasPrefix(err.Error(), "listen: ") {
		t.Errorf("%v", err)
	}
	none := filepath.Join(t.TempDir(), "none", "s")
	_, err = ListenUnix(none, 0)
	if err == nil || err.Error() != "listen on "+none+": no such file or directory" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A socket file is replaced if nobody answers on it. Another file is not.
func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	mode := func() fs.FileMode {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	ln, err := ListenUnix(path, 0)
	dial(t, closes(t, ln, err).Addr())
	byUmask := mode().Perm()
	if _, err := ListenUnix(path, 0); err == nil || err.Error() != "listen on "+path+": another process answers on it" {
		t.Errorf("%v", err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // as when a process is killed
	ln.Close()
	for _, perm := range []fs.FileMode{0o777, 0o600, 0} {
		ln, err := ListenUnix(path, perm)
		dial(t, closes(t, ln, err).Addr())
		if perm == 0 {
			perm = byUmask
		}
		if got := mode(); got != fs.ModeSocket|perm {
			t.Errorf("%v, want %v", got, perm)
		}
		ln.(*net.UnixListener).SetUnlinkOnClose(false)
		ln.Close()
	}
	os.Remove(path)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path, 0); err == nil {
		t.Error("it listens in place of a file")
	}
	if text, _ := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file has %q", text)
	}
}
