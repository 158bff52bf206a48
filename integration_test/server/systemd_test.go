package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// notices is the socket on which systemd hears from its services.
type notices struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func listenNotices(t *testing.T) *notices {
	t.Helper()
	path := filepath.Join(harness.SocketDir(t), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &notices{t, path, conn}
}

// next is the next notice that is none of the watchdog's, or with watchdog the next of these.
func (n *notices) next(watchdog bool) string {
	n.t.Helper()
	buf := make([]byte, 4<<10)
	for {
		n.conn.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
		size, err := n.conn.Read(buf)
		if err != nil {
			n.t.Fatal(err)
		}
		if text := string(buf[:size]); (text == "WATCHDOG=1") == watchdog {
			return text
		}
	}
}

// count returns how many notices wait to be read.
func (n *notices) count() (count int) {
	n.t.Helper()
	raw, err := n.conn.SyscallConn()
	if err != nil {
		n.t.Fatal(err)
	}
	buf := make([]byte, 4<<10)
	raw.Control(func(fd uintptr) { // without a deadline, as that could pass before the first is read
		for ; ; count++ {
			if _, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT); err != nil {
				return
			}
		}
	})
	return count
}

// TestNotices plays systemd: it hears when celld loads, serves, reloads and stops.
func TestNotices(t *testing.T) {
	t.Parallel()
	n, policies := listenNotices(t), filepath.Join(t.TempDir(), "policies")
	celldtest.WriteFile(t, "api 1/1h", policies)
	srv := harness.Spec{Env: []string{"NOTIFY_SOCKET=" + n.path}, Flags: []string{"--appendonly", "yes", "--policies", policies}}.Start(t)
	serving := "READY=1\nSTATUS=serving on " + strings.Join(srv.Addrs, " ")
	expect := func(want string) {
		t.Helper()
		if got := n.next(false); got != want && !(strings.HasPrefix(got, want) && strings.HasSuffix(want, "=")) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	expect("STATUS=loading")
	expect(serving)
	for range 2 {
		reload(srv)
		expect("RELOADING=1\nMONOTONIC_USEC=")
		expect(serving)
	}
	srv.Stop()
	expect("STOPPING=1\nSTATUS=stopping")
	if more := n.count(); more != 0 {
		t.Errorf("%d notices more; there is no watchdog", more)
	}
}

// TestWatchdog hears from celld while calls are decided, and not while a script keeps all others from that.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	n := listenNotices(t)
	srv := harness.Spec{Env: []string{"NOTIFY_SOCKET=" + n.path, "WATCHDOG_USEC=2000000"},
		Flags: []string{"--lua-time-limit", "50"}}.Start(t)
	n.next(true)
	n.next(true)
	slow, other := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	slow.Send(harness.Frame("EVAL", "while true do end", "0"))
	const refusal = "the watchdog of systemd is not notified: no decision goes through"
	celldtest.Eventually(t, "the script is busy", func() bool { return strings.HasPrefix(other.Do("PING"), "-BUSY ") })
	refusals := func() int { return strings.Count(srv.Log.String(), refusal) }
	first := refusals()
	celldtest.Eventually(t, "no decision goes through", func() bool { return refusals() > first })
	n.count()
	celldtest.Eventually(t, "two times more", func() bool { return refusals() > first+2 })
	if told := n.count(); told != 0 {
		t.Errorf("the watchdog was told %d times", told)
	}
	other.Do("SCRIPT", "KILL")
	n.next(true)

	away := listenNotices(t) // an engine that is away is no reason to restart celld
	harness.Spec{Env: []string{"NOTIFY_SOCKET=" + away.path, "WATCHDOG_USEC=1000000"},
		Flags: []string{"--store", "redis://127.0.0.1:1"}}.Start(t)
	away.next(true)
	away.next(true)
}

// unit is a service with sockets that outlive it.
type unit struct {
	t         *testing.T
	listeners []net.Listener
	names     []string
	authority *celldtest.Authority
}

func (u *unit) listen(name, network, addr string) string {
	u.t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { ln.Close() })
	u.listeners, u.names = append(u.listeners, ln), append(u.names, name)
	return ln.Addr().String()
}

// spec starts celld as systemd does, with the sockets from descriptor 3 on.
func (u *unit) spec(flags ...string) harness.Spec {
	u.t.Helper()
	s := harness.Spec{Flags: flags, Wrap: []string{"/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, Env: []string{
		"LISTEN_FDS=" + strconv.Itoa(len(u.listeners)), "LISTEN_FDNAMES=" + strings.Join(u.names, ":"),
	}}
	for _, ln := range u.listeners {
		f, err := ln.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			u.t.Fatal(err)
		}
		u.t.Cleanup(func() { f.Close() })
		s.Files = append(s.Files, f)
	}
	return s
}

// TestSocketActivation restarts celld again and again while clients connect to each of its sockets. No connection is refused. Those
// that come while there is no celld are served by the next one.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	u := &unit{t: t, authority: celldtest.NewAuthority(t)}
	cert, key := u.authority.Sign("celld", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	unixPath := filepath.Join(harness.SocketDir(t), "celld.sock")
	u.listen("resp", "unix", unixPath)
	tcp, secure, web := u.listen("celld.socket", "tcp", "127.0.0.1:0"), u.listen("tls", "tcp", "127.0.0.1:0"),
		u.listen("http", "tcp", "127.0.0.1:0")
	port := harness.FreePort(t)
	flags := []string{"--port", port, "--unixsocket", unixPath + "2", "--tls-port", "1", "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key}

	dials := map[string]func() (net.Conn, error){
		"TCP":  func() (net.Conn, error) { return net.Dial("tcp", tcp) },
		"unix": func() (net.Conn, error) { return net.Dial("unix", unixPath) },
		"TLS":  func() (net.Conn, error) { return net.Dial("tcp", secure) },
		"HTTP": func() (net.Conn, error) { return net.Dial("tcp", web) },
	}
	ask := func(kind string, conn net.Conn) (string, error) {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
		question := "PING\r\n"
		switch kind {
		case "TLS":
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		case "HTTP":
			question = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		}
		if _, err := conn.Write([]byte(question)); err != nil {
			return "", err
		}
		buf := make([]byte, 64)
		size, err := conn.Read(buf)
		return string(buf[:size]), err
	}
	answered := func(answer string) bool {
		return answer == "+PONG\r\n" || strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n")
	}

	done := make(chan struct{})
	var clients sync.WaitGroup
	for kind, dial := range dials {
		clients.Go(func() {
			for asked := 0; ; asked++ {
				select {
				case <-done:
					if asked < 10 {
						t.Errorf("%s: %d calls", kind, asked)
					}
					return
				default:
				}
				conn, err := dial()
				if err != nil {
					t.Errorf("%s: a connection was refused: %v", kind, err)
					return
				}
				// A connection that came while the old celld stopped may be closed before its call has arrived.
				if answer, err := ask(kind, conn); err == nil && !answered(answer) {
					t.Errorf("%s: %q", kind, answer)
				}
			}
		})
	}
	for range 4 {
		waiting := map[string]net.Conn{} // connected while there is no celld
		for kind, dial := range dials {
			conn, err := dial()
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			waiting[kind] = conn
		}
		srv := u.spec(flags...).Start(t)
		for kind, conn := range waiting {
			if answer, err := ask(kind, conn); !answered(answer) {
				t.Errorf("%s, which has waited: %q, %v", kind, answer, err)
			}
		}
		if len(srv.Addrs) != 3 {
			t.Errorf("it listens on %q", srv.Addrs)
		}
		srv.Stop()
	}
	u.spec(flags...).Start(t)
	close(done)
	clients.Wait()
	for _, own := range []string{"127.0.0.1:" + port, unixPath + "2"} {
		network := map[bool]string{true: "unix", false: "tcp"}[strings.HasPrefix(own, "/")]
		if conn, err := net.Dial(network, own); err == nil {
			conn.Close()
			t.Errorf("it listens on %s, too", own)
		}
	}
	info := harness.Dial(t, tcp).Do("INFO", "server")
	_, tcpPort := harness.HostPort(tcp)
	_, tlsPort := harness.HostPort(secure)
	for _, want := range []string{
		"tcp_port:" + tcpPort, "listener0:name=tcp,bind=127.0.0.1,port=" + tcpPort, "listener1:name=unix,bind=" + unixPath,
		"listener2:name=tls,bind=127.0.0.1,port=" + tlsPort,
	} {
		if !strings.Contains(info, want+"\r\n") {
			t.Errorf("INFO has no %q: %q", want, info)
		}
	}
}

// TestSocketForTLSOnly passes a socket for TLS only, beside which celld opens those for plain connections.
func TestSocketForTLSOnly(t *testing.T) {
	t.Parallel()
	u := &unit{t: t, authority: celldtest.NewAuthority(t)}
	cert, key := u.authority.Sign("celld", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	secure, unixPath := u.listen("tls", "tcp", "127.0.0.1:0"), filepath.Join(harness.SocketDir(t), "celld.sock")
	srv := u.spec("--port", harness.FreePort(t), "--unixsocket", unixPath, "--tls-port", "1", "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key).Start(t)
	srv.Alive()
	if addrs := strings.Join(srv.Addrs, " "); !strings.Contains(addrs, "unix:"+unixPath) || !strings.Contains(addrs, "tls:"+secure) {
		t.Errorf("it serves on %s", addrs)
	}
}

// TestBadSockets looks for one line for each socket that is of no use.
func TestBadSockets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ addr, says string }{
		"nosuch": {"127.0.0.1:0", "FileDescriptorName must be resp, tls or http"},
		"tls":    {"127.0.0.1:0", "--tls-port"},
		"http":   {"0.0.0.0:0", "--http-token-file"},
	} {
		u := &unit{t: t}
		u.listen(name, "tcp", test.addr)
		oneLineOf(t, u.spec(), 1, test.says)
	}
	u := &unit{t: t}
	s := u.spec()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	f, err := udp.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.Files, s.Env = []*os.File{f}, []string{"LISTEN_FDS=1"}
	oneLineOf(t, s, 1, "does not listen")

	u = &unit{t: t} // sockets for another process are none
	u.listen("nosuch", "tcp", "127.0.0.1:0")
	s = u.spec()
	s.Wrap = nil
	s.Env = append(s.Env, "LISTEN_PID=1")
	s.Start(t).Alive()
}

// oneLineOf runs celld to its end.
func oneLineOf(t *testing.T, s harness.Spec, code int, says string) {
	t.Helper()
	cmd := s.Command(t)
	timer := time.AfterFunc(harness.StopTimeout, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, _ := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(lines[len(lines)-1], says) {
		t.Errorf("exit code %d, %s; want %q", got, out, says)
	}
}

// TestSystemdSocketActivate passes the socket with systemd's own program.
func TestSystemdSocketActivate(t *testing.T) {
	t.Parallel()
	path, port := celldtest.Need(t, "systemd-socket-activate"), harness.FreePort(t)
	cmd := exec.Command(path, "-l", "127.0.0.1:"+port, "--fdname=resp", harness.Binary(t), "--port", "1", "--dir", t.TempDir())
	cmd.Env = harness.CleanEnv()
	celldtest.RunPeer(t, "systemd-socket-activate", t.TempDir(), cmd, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return false
		}
		defer conn.Close()
		fmt.Fprint(conn, "PING\r\n")
		buf := make([]byte, 7)
		conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
		_, err = conn.Read(buf)
		return err == nil && string(buf) == "+PONG\r\n"
	})
	cmd.Process.Signal(syscall.SIGTERM)
}
