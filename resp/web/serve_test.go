package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/loglimit"
	"celld/resp/web/guard"
)

func logger(log *celldtest.LogBuffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func listenOn(t *testing.T, network, at string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// Sockets that are passed are held to what is asked of --http-bind.
func TestListen(t *testing.T) {
	loopback, all, unix := listenOn(t, "tcp", "127.0.0.1:0"), listenOn(t, "tcp", ":0"), listenOn(t, "unix", filepath.Join(t.TempDir(), "s"))
	for name, test := range map[string]struct {
		h     Options
		fails string
	}{
		"nothing":              {Options{}, ""},
		"loopback":             {Options{Inherited: []net.Listener{loopback}}, ""},
		"all, with a token":    {Options{Inherited: []net.Listener{loopback, all}, Token: "x"}, ""},
		"all, without a token": {Options{Inherited: []net.Listener{loopback, all}}, "is not a loopback address, so it needs --http-token-file"},
		"unix":                 {Options{Inherited: []net.Listener{unix}, Token: "x"}, "is not on TCP"},
	} {
		got, err := listen(test.h)
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) ||
			err == nil && len(got) != len(test.h.Inherited) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	both := Options{Inherited: []net.Listener{loopback}, Bind: loopback.Addr().String()}
	if got, err := listen(both); err != nil || len(got) != 1 || got[0] != loopback {
		t.Errorf("%v, %v", got, err)
	}
	taken := "--http-bind: listen on " + loopback.Addr().String() + ": address already in use"
	if got, err := listen(Options{Bind: loopback.Addr().String()}); err == nil || err.Error() != taken {
		t.Errorf("%v, %v", got, err)
	}
	if err := Serve(nil, Options{Bind: loopback.Addr().String()}, nil); err == nil {
		t.Error("it listens twice")
	}
	if err := Serve(nil, Options{}, nil); err != nil {
		t.Error(err)
	}
	got, err := listen(Options{Bind: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	got[0].Close()
}

// run serves until stop is called, and tells what the server logged.
func run(t *testing.T, h Options) (addr string, log *celldtest.LogBuffer, stop func()) {
	t.Helper()
	log = &celldtest.LogBuffer{}
	site := newTestSiteThat(t, h, logger(log))
	ln := listenOn(t, "tcp", "127.0.0.1:0")
	h.Inherited = []net.Listener{ln}
	if err := Serve(site.server, h, logger(log)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error)
	go func() { ended <- site.server.Serve(ctx, nil, func() { close(ready) }) }()
	<-ready
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return ln.Addr().String(), log, stop
}

// The port is served until the server stops.
func TestServe(t *testing.T) {
	addr, log, stop := run(t, Options{MaxConnections: 10})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Get("http://" + addr + "/readyz")
	if err != nil || got.StatusCode != 200 {
		t.Fatalf("%v, %v", got, err)
	}
	got.Body.Close()
	if !strings.Contains(log.String(), "HTTP is served") || !strings.Contains(log.String(), "http="+addr+" tls=false") {
		t.Error(log)
	}
	stop()
	if got, err := client.Get("http://" + addr + "/livez"); err == nil {
		t.Errorf("after the end: %d", got.StatusCode)
	}
}

// One connection more than there may be hears so, and is logged; the next one after another's end is served.
func TestMostConnections(t *testing.T) {
	addr, log, _ := run(t, Options{MaxConnections: 2})
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return conn
	}
	status := func(conn net.Conn) string {
		buf := make([]byte, 12)
		_, _ = io.ReadFull(conn, buf)
		return string(buf)
	}
	first, second := dial(), dial()
	if a, b := status(first), status(second); a != "HTTP/1.1 200" || b != a {
		t.Fatalf("%q, %q", a, b)
	}
	third := dial()
	if rest, _ := io.ReadAll(third); !strings.HasPrefix(fullAnswer, string(rest)) { // the kernel may cut it off, as the request is not read
		t.Errorf("%q", rest)
	}
	celldtest.Eventually(t, "the log tells of it", func() bool { return strings.Contains(log.String(), "reason=http-max-connections") })
	first.Close()
	celldtest.Eventually(t, "there is a place", func() bool { return status(dial()) == "HTTP/1.1 200" })
}

// fakeListener hands out these connections, and then an error.
type fakeListener struct {
	net.Listener
	conns []net.Conn
}

func (l *fakeListener) Accept() (net.Conn, error) {
	if len(l.conns) == 0 {
		return nil, errors.New("no more")
	}
	conn := l.conns[0]
	l.conns = l.conns[1:]
	return conn, nil
}

// All listeners share the bound. A connection counts until it is closed, once however often that is.
func TestLimitConnections(t *testing.T) {
	for _, secure := range []bool{false, true} {
		var far []net.Conn
		pipes := func(n int) (near []net.Conn) {
			for range n {
				a, b := net.Pipe()
				near, far = append(near, a), append(far, b)
			}
			return near
		}
		refused := 0
		var config func() *tls.Config
		if secure {
			config = func() *tls.Config { return &tls.Config{} }
		}
		var limited []net.Listener
		open := new(atomic.Int64)
		for _, n := range []int{3, 2} {
			limited = append(limited, &connections{Listener: &fakeListener{conns: pipes(n)}, most: 2, open: open, tls: config,
				refused: func(net.Addr) { refused++ }})
		}
		a, _ := limited[0].Accept()
		b, _ := limited[1].Accept()
		heard := make(chan string, 4)
		for _, conn := range far {
			go func() {
				text, _ := io.ReadAll(conn)
				heard <- string(text)
			}()
		}
		a.Close()
		a.Close()
		c, err := limited[0].Accept()
		if _, isSecure := c.(*tls.Conn); err != nil || refused != 0 || isSecure != secure {
			t.Fatal(err, refused, isSecure)
		}
		for _, ln := range limited { // the one that is left of each is refused, and then there is none
			if conn, err := ln.Accept(); err == nil {
				t.Errorf("%v is one too many", conn)
			}
		}
		want := map[bool]string{false: fullAnswer, true: ""}[secure]
		texts := []string{<-heard, <-heard, <-heard}
		if strings.Join(texts, "") != want+want || refused != 2 {
			t.Errorf("%q, %d refused", texts, refused)
		}
		b.Close()
		c.Close()
	}
}

// With TLS, a handshake that fails is counted and logged. A look whether the port is open is not.
func TestServeTLS(t *testing.T) {
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	addr, log, _ := run(t, Options{MaxConnections: 10, TLS: func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pair}}
	}})
	look, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	look.Close()
	plain, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = io.WriteString(plain, "no TLS at all\r\n")
	celldtest.Eventually(t, "the log tells of the handshake", func() bool {
		return strings.Contains(log.String(), "a TLS handshake of the HTTP port failed")
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, ca.File)))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
		Timeout: celldtest.Patience}
	got, err := client.Get("https://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(got.Body)
	got.Body.Close()
	if got.StatusCode != 200 || !strings.Contains(string(body), "\ncelld_tls_handshake_failures_total 1\n") ||
		strings.Contains(log.String(), "EOF") || !strings.Contains(log.String(), "tls=true") {
		t.Errorf("%d, %s", got.StatusCode, log)
	}
	if n, err := (mistakes{}).Write([]byte("http: something else")); n != 20 || err != nil {
		t.Error(n, err)
	}
}

// A request that is refused for its token or its origin is in the log.
func TestRefusalsAreLogged(t *testing.T) {
	log := &celldtest.LogBuffer{}
	verbose := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: loglimit.Verbose}))
	ask(t, newTestSiteThat(t, withToken, verbose), "GET /metrics HTTP/1.1\n"+here)
	ask(t, newTestSiteThat(t, Options{}, verbose), "GET /check/api/by/word:x HTTP/1.1\n"+fetch)
	for _, want := range []string{
		`client=127.0.0.1:1 reason="not the token of --http-token-file"`,
		`level=WARN msg="an HTTP request is refused" client=127.0.0.1:1 reason="` + guard.AnotherSite,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log)
		}
	}
}
