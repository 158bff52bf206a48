package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"celld/resp"
)

// manager is what hears, in place of systemd.
type manager struct{ net.PacketConn }

func newManager(t *testing.T) manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return manager{conn}
}

// heard returns what has been told, which is there when a Notifier's method has returned.
func (m manager) heard(t *testing.T) string {
	t.Helper()
	raw, err := m.PacketConn.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	err = raw.Read(func(fd uintptr) bool {
		for buf := make([]byte, 1000); ; {
			n, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT)
			if err != nil {
				return true
			}
			all = append(all, string(buf[:n]))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "; ")
}

func TestNotifier(t *testing.T) {
	m := newManager(t)
	var log bytes.Buffer
	n := Notifier{Log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, test := range []struct {
		state resp.State
		want  string
	}{
		{resp.Loading, "STATUS=loading"},
		{resp.Reloaded, "READY=1\nSTATUS=serving on 127.0.0.1:1 /s"},
		{resp.Ready, "READY=1\nSTATUS=serving on 127.0.0.1:1 /s"},
		{resp.Reloading, "RELOADING=1\nMONOTONIC_USEC=N\nSTATUS=reloading"},
		{resp.Stopping, "STOPPING=1\nSTATUS=stopping"},
	} {
		n.Tell(test.state, []string{"127.0.0.1:1", "/s"})
		got := m.heard(t)
		if _, rest, ok := strings.Cut(got, "USEC="); ok {
			digits, _, _ := strings.Cut(rest, "\n")
			got = strings.Replace(got, digits, "N", 1)
		}
		if got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
	t.Setenv("NOTIFY_SOCKET", "/none")
	if n.Tell(resp.Stopping, nil); !strings.Contains(log.String(), "cannot notify systemd") {
		t.Errorf("nobody hears it, and the log has %q", log.String())
	}
	t.Setenv("NOTIFY_SOCKET", "")
	log.Reset()
	if n.Tell(resp.Stopping, nil); log.Len() > 0 {
		t.Errorf("without systemd: %q", log.String())
	}
}

// The watchdog hears of it at once and twice in its time, while the service works, and the service has half that time to show it.
func TestWatch(t *testing.T) {
	const limit = 20 * time.Second
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "20000000")
	t.Setenv("WATCHDOG_PID", "")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		began, calls, last := time.Now(), 0, context.Context(nil)
		Notifier{Log: slog.New(slog.NewTextHandler(&log, nil))}.watchUntil(func(ctx context.Context) error {
			if at := time.Since(began); at != time.Duration(calls)*limit/2 {
				t.Errorf("call %d after %v", calls, at)
			}
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != limit/2 || ctx.Err() != nil {
				t.Errorf("call %d has until %v", calls, deadline)
			}
			if last != nil && last.Err() != context.Canceled {
				t.Errorf("the context of the call before has ended by %v", last.Err())
			}
			last = ctx
			heard := m.heard(t)
			if want := map[bool]string{true: "WATCHDOG=1"}[calls == 1 || calls == 2 || calls == 4]; heard != want {
				t.Errorf("before call %d it heard %q, want %q", calls, heard, want)
			}
			if told := strings.Count(log.String(), "no decision goes through"); told != map[bool]int{true: 1}[calls >= 3] {
				t.Errorf("before call %d the log has %q", calls, log.String())
			}
			calls++
			switch calls {
			case 3:
				return errors.New("stuck")
			case 5:
				runtime.Goexit()
			}
			return nil
		})
		if calls != 5 {
			t.Errorf("%d calls", calls)
		}
	})
}

// watchUntil returns when works has ended its goroutine.
func (n Notifier) watchUntil(works func(context.Context) error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.Watch(works)
	}()
	<-ended
}

// Without a watchdog nothing is watched, and what is wrong with one is logged.
func TestNoWatchdog(t *testing.T) {
	t.Setenv("WATCHDOG_PID", "")
	const refusal = "the watchdog of systemd is not notified"
	for usec, want := range map[string]string{"": "", "x": refusal, "-1": refusal} {
		var log bytes.Buffer
		t.Setenv("WATCHDOG_USEC", usec)
		Notifier{Log: slog.New(slog.NewTextHandler(&log, nil))}.Watch(func(context.Context) error {
			t.Error("it watches")
			runtime.Goexit()
			return nil
		})
		if !strings.Contains(log.String(), want) || want == "" && log.Len() > 0 {
			t.Errorf("%q: %q", usec, log.String())
		}
	}
}

// passed is a socket as systemd passes it, by its name.
func passed(t *testing.T, kind int, listens bool, name string) *os.File {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, kind, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil && listens {
		err = syscall.Listen(fd, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), name)
}

// Sockets are told apart by their names. Those without one are for RESP.
func TestSockets(t *testing.T) {
	var files []*os.File
	for _, name := range []string{"tls", "http", "resp", "celld.socket", "unknown", "LISTEN_FD_7", "http"} {
		files = append(files, passed(t, syscall.SOCK_STREAM, true, name))
	}
	in, err := sockets(files)
	if err != nil || len(in.TLS) != 1 || len(in.HTTP) != 2 || len(in.Plain) != 4 {
		t.Fatalf("%+v, %v", in, err)
	}
	for _, ln := range append(append(in.TLS, in.HTTP...), in.Plain...) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		ln.Close()
	}
	for _, f := range files {
		if err := f.Close(); err == nil {
			t.Errorf("%s is left open", f.Name())
		}
	}
	for want, file := range map[string]*os.File{
		`the socket "other" of systemd: FileDescriptorName must be resp, tls or http`:                  passed(t, syscall.SOCK_STREAM, true, "other"),
		`the socket "tls" of systemd: it does not listen (ListenStream= and Accept=no)`:                passed(t, syscall.SOCK_STREAM, false, "tls"),
		`the socket "http" of systemd: it does not listen (ListenStream= and Accept=no)`:               passed(t, syscall.SOCK_DGRAM, false, "http"),
		`the socket "` + os.DevNull + `" of systemd: it does not listen (ListenStream= and Accept=no)`: devNull(t),
	} {
		if _, err := sockets([]*os.File{file}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	t.Setenv("LISTEN_PID", "")
	if in, err := Sockets(); err != nil || len(in.Plain)+len(in.TLS)+len(in.HTTP) > 0 {
		t.Errorf("without systemd: %+v, %v", in, err)
	}
}

func devNull(t *testing.T) *os.File {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
