package listen

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/certs"
	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/resp/metrics"
	"celld/resp/transport"
)

// sockets are those of some settings, with what the log says.
func sockets(t *testing.T, settings map[string]string, in Inherited) (*Sockets, *bytes.Buffer) {
	t.Helper()
	cfg, log := config.New(), &bytes.Buffer{}
	for name, value := range settings {
		if err := cfg.Setting(name).Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	return New(cfg, loglimit.New(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil), in), log
}

// pair is a certificate in files that a test may replace.
type pair struct {
	ca    *celldtest.Authority
	files certs.Files
}

func newPair(t *testing.T) pair {
	dir := t.TempDir()
	return pair{celldtest.NewAuthority(t), certs.Files{Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key")}}
}

func (p pair) put(t *testing.T, ends time.Time) {
	t.Helper()
	cert, key := p.ca.Sign("x", &x509.Certificate{NotAfter: ends})
	celldtest.WriteFile(t, celldtest.ReadFile(t, cert), p.files.Cert)
	celldtest.WriteFile(t, celldtest.ReadFile(t, key), p.files.Key)
}

func (p pair) keeper(t *testing.T) *certs.Keeper {
	t.Helper()
	p.put(t, time.Time{})
	k, err := certs.Open(p.files)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func open(t *testing.T, network, at string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// declared are the lines of INFO about listeners.
func declared(s *Sockets) (lines string) {
	for line := range strings.Lines(metrics.New(metrics.Section{Name: "Server", ByDefault: true, Read: s.Declare}).Info(0)) {
		if strings.HasPrefix(line, "listener") {
			lines += strings.TrimSpace(line) + " "
		}
	}
	return lines
}

// Sockets that another process has opened replace those that the settings would open, each kind by itself.
func TestInherited(t *testing.T) {
	plain, secure, path := open(t, "tcp", "127.0.0.1:0"), open(t, "tcp", "127.0.0.1:0"), filepath.Join(t.TempDir(), "s")
	unix := open(t, "unix", path)
	port := func(ln net.Listener) int { return ln.Addr().(*net.TCPAddr).Port }
	keeper := newPair(t).keeper(t)
	for _, test := range []struct {
		settings map[string]string
		in       Inherited
		keeper   bool
		want     []net.Listener // nil: its own
		declares string         // %d is the port of its own
	}{
		{map[string]string{"port": "0", "bind": "127.0.0.1"}, Inherited{}, false, []net.Listener{nil}, "listener0:name=tcp,bind=127.0.0.1,port=%d "},
		{map[string]string{"port": "0", "bind": "127.0.0.1"}, Inherited{Plain: []net.Listener{plain}}, false, []net.Listener{plain}, fmt.Sprintf("listener0:name=tcp,bind=127.0.0.1,port=%d ", port(plain))},
		{map[string]string{"port": "0", "bind": "127.0.0.1"}, Inherited{Plain: []net.Listener{unix}}, false, []net.Listener{unix}, "listener1:name=unix,bind=" + path + " "},
		{map[string]string{"port": "0", "bind": "127.0.0.1"}, Inherited{Plain: []net.Listener{plain, secure, unix}}, false,
			[]net.Listener{plain, secure, unix},
			fmt.Sprintf("listener0:name=tcp,bind=127.0.0.1,bind=127.0.0.1,port=%d listener1:name=unix,bind=%s ", port(plain), path)},
		{map[string]string{"port": "0", "bind": "127.0.0.1"}, Inherited{TLS: []net.Listener{secure}}, true, []net.Listener{nil, secure}, fmt.Sprintf("listener0:name=tcp,bind=127.0.0.1,port=%%d listener2:name=tls,bind=127.0.0.1,port=%d ", port(secure))},
		{map[string]string{"port": "0", "bind": "127.0.0.1", "tls-port": "1"},
			Inherited{Plain: []net.Listener{plain}, TLS: []net.Listener{secure}}, true, []net.Listener{plain, secure},
			fmt.Sprintf("listener0:name=tcp,bind=127.0.0.1,port=%d listener2:name=tls,bind=127.0.0.1,port=%d ", port(plain), port(secure))},
	} {
		s, _ := sockets(t, test.settings, test.in)
		if test.keeper {
			s.cfg.TLS.Keeper = keeper
		}
		listeners, err := s.Listen()
		if err != nil || len(listeners) != len(test.want) {
			t.Fatalf("%+v: %v, %v", test, AddrTexts(listeners), err)
		}
		declares := test.declares
		for i, ln := range listeners {
			if want := test.want[i]; want != nil && ln.Listener != want || (ln.TLS != nil) != (ln.Listener == secure && test.keeper) {
				t.Errorf("%+v: %d is %v, with TLS %v", test, i, ln.Addr(), ln.TLS != nil)
			}
			if test.want[i] == nil {
				declares = fmt.Sprintf(declares, port(ln.Listener))
				ln.Close()
			}
		}
		if got := declared(s); got != declares {
			t.Errorf("INFO has %s, want %s", got, declares)
		}
	}
	s, _ := sockets(t, map[string]string{"port": "0"}, Inherited{TLS: []net.Listener{secure}})
	listeners, err := s.Listen()
	if err == nil || err.Error() != "systemd passes a socket for TLS, but --tls-port and its certificates are not set" {
		closeAll(listeners)
		t.Errorf("a socket for TLS without certificates: %v", err)
	}
	s, _ = sockets(t, map[string]string{"port": "0"}, Inherited{HTTP: []net.Listener{secure}})
	if listeners, err = s.Listen(); err == nil || err.Error() != "systemd passes a socket for HTTP, which this celld does not serve" {
		closeAll(listeners)
		t.Errorf("a socket for HTTP without its wing: %v", err)
	}
}

// The port for TLS is one of its own, and tells who speaks without it what is wrong.
func TestListenTLS(t *testing.T) {
	free := open(t, "tcp", "127.0.0.1:0")
	port := fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	s, log := sockets(t, map[string]string{"port": "0", "bind": "127.0.0.1,-192.0.2.1", "tls-port": port, "tls-max-handshakes": "7",
		"maxclients": "1048576"}, Inherited{})
	s.cfg.TLS.Keeper = newPair(t).keeper(t)
	listeners, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(listeners)
	if texts := AddrTexts(listeners); len(texts) != 1 || texts[0] != "tls:127.0.0.1:"+port {
		t.Fatalf("%v", texts)
	}
	if tls := listeners[0].TLS; tls.Config == nil || tls.Most() != 7 || tls.Plainly != "-ERR this port takes TLS only\r\n" {
		t.Errorf("%+v", tls)
	}
	if got := declared(s); got != "listener2:name=tls,bind=127.0.0.1,bind=-192.0.2.1,port="+port+" " {
		t.Errorf("INFO has %s", got)
	}
	want, _ := s.mostClients(1 << 20)
	if s.cfg.MaxClients.Get() != want || !strings.Contains(log.String(), `msg="an optional address does not exist here" host=192.0.2.1`) {
		t.Errorf("maxclients %d, want %d; %s", s.cfg.MaxClients.Get(), want, log)
	}
}

// Where one socket cannot be had, those are closed that have been opened before.
func TestListenClosesAll(t *testing.T) {
	taken := open(t, "tcp", "127.0.0.93:0")
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	s, _ := sockets(t, map[string]string{"port": port, "bind": "127.0.0.92,127.0.0.93"}, Inherited{})
	if listeners, err := s.Listen(); err == nil {
		closeAll(listeners)
		t.Fatal("no error")
	}
	open(t, "tcp", "127.0.0.92:"+port)
	s, _ = sockets(t, map[string]string{"port": "0", "bind": "127.0.0.93", "tls-port": port}, Inherited{})
	s.cfg.TLS.Keeper = newPair(t).keeper(t)
	plain := open(t, "tcp", "127.0.0.93:0")
	s.inherited.Plain = []net.Listener{plain}
	if listeners, err := s.Listen(); err == nil {
		closeAll(listeners)
		t.Fatal("no error")
	}
	if _, err := plain.Accept(); err == nil {
		t.Error("it is still open")
	}
}

// Connections of HTTP count against the limit on open files, too, where there are any.
func TestMostClientsBesideHTTP(t *testing.T) {
	const wanted = 1 << 30
	alone, _ := sockets(t, nil, Inherited{})
	most, openFiles := alone.mostClients(wanted)
	if plain, files := transport.MostConnections(wanted, alone.cfg.IOThreads.Get()); most != plain || openFiles != files {
		t.Errorf("%d of %d files, want %d of %d", most, openFiles, plain, files)
	}
	for _, s := range []*Sockets{
		New(config.New(door("http", 1, 100)), alone.log, Inherited{}),
		New(config.New(door("closed", 0, 7), door("a", 1, 40), door("b", 3, 20)), alone.log, Inherited{}),
	} {
		want := most - 100
		if most == wanted { // there is no limit
			want = wanted
		}
		if got, _ := s.mostClients(wanted); got != want {
			t.Errorf("%d beside HTTP, want %d", got, want)
		}
	}
	alone.cfg.MaxClients.Put(wanted)
	if err := alone.MayServe(wanted); err != nil {
		t.Errorf("as many as before: %v", err)
	}
}
