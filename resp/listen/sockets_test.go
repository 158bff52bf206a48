package listen

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/resp/transport"
)

// TestPortZeroAtSeveralAddresses takes 700 ports at the second of two addresses. The kernel gives them out from 7,000: a quarter of
// its range, the even ones of its lower half. So one try in ten fails, and of 100 servers that all get a port, each has the same one at
// both. With 2,800 ports, all ten tries of one server in ten thousand fail.
func TestPortZeroAtSeveralAddresses(t *testing.T) {
	for range 700 {
		ln, err := net.Listen("tcp", "127.0.0.89:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	for range 100 {
		cfg := config.New()
		for name, value := range map[string]string{"port": "0", "bind": "127.0.0.88,127.0.0.89"} {
			if err := cfg.Setting(name).Value.Set(value); err != nil {
				t.Fatal(err)
			}
		}
		s := New(cfg, loglimit.New(slog.New(slog.DiscardHandler), nil), Inherited{})
		listeners, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		if a, b := listeners[0].Addr().(*net.TCPAddr).Port, listeners[1].Addr().(*net.TCPAddr).Port; a != b {
			t.Errorf("ports %d and %d", a, b)
		}
		for _, ln := range listeners {
			ln.Close()
		}
	}
}

// Listen opens all addresses or none.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	free, err := net.Listen("tcp", "127.0.0.91:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	free.Close()
	const notHere = "192.0.2.1" // an address for documents
	for _, test := range []struct {
		bind, port, socket, perm string
		want                     string // addresses, or the end of an error
		fails                    bool
	}{
		{bind: "127.0.0.91", port: port, want: at},
		{bind: "127.0.0.91,-" + notHere, port: port, want: at},
		{bind: "-" + notHere + ",127.0.0.91", port: port, want: at},
		{bind: "-" + notHere, port: port, want: "listen: none of the addresses of --bind exists here", fails: true},
		{bind: "127.0.0.91," + notHere, port: port, want: notHere + ":" + port + ": cannot assign requested address", fails: true},
		{bind: "127.0.0.91", port: port, socket: socket, want: at + " unix:" + socket},
		{bind: "127.0.0.91", port: "0", socket: socket, perm: "604", want: "unix:" + socket},
		{bind: "127.0.0.91", port: port, socket: filepath.Join(dir, "nosuch", "s"), want: "no such file or directory", fails: true},
	} {
		cfg := config.New()
		for name, value := range map[string]string{
			"bind": test.bind, "port": test.port, "unixsocket": test.socket, "unixsocketperm": test.perm,
		} {
			if err := cfg.Setting(name).Value.Set(value); err != nil && value != "" {
				t.Fatal(err)
			}
		}
		s := New(cfg, loglimit.New(slog.New(slog.DiscardHandler), nil), Inherited{})
		listeners, err := s.Listen()
		got := strings.Join(AddrTexts(listeners), " ")
		if (err != nil) != test.fails || err == nil && got != test.want || err != nil && !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
		if len(s.addrs) != len(listeners) {
			t.Errorf("%+v: knows %v", test, s.addrs)
		}
		if wantPort := test.port; err == nil && fmt.Sprint(s.TCPPort()) != wantPort {
			t.Errorf("%+v: tcp_port %d", test, s.TCPPort())
		}
		if test.perm != "" {
			if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o604 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		}
		closeAll(listeners)
		if again, err := net.Listen("tcp", at); err != nil {
			t.Errorf("%+v leaves %s open: %v", test, at, err)
		} else {
			again.Close()
		}
	}
}

// The error of an address that cannot be had names the setting that it is from.
func TestListenNamesTheSetting(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for want, settings := range map[string]map[string]string{
		"--port: listen on 127.0.0.1:" + port + ": address already in use":          {"port": port},
		"--tls-port: listen on 127.0.0.1:" + port + ": address already in use":      {"port": "0", "tls-port": port},
		"--bind: listen on 192.0.2.1:" + port + ": cannot assign requested address": {"port": port, "bind": "192.0.2.1"},
		"--unixsocket: listen on " + dir + "/s: another process answers on it":      {"port": "0", "unixsocket": dir + "/s"},
		"--unixsocket: listen on " + dir + "/none/s: no such file or directory":     {"port": "0", "unixsocket": dir + "/none/s"},
	} {
		cfg := config.New()
		for name, value := range settings {
			if err := cfg.Setting(name).Value.Set(value); err != nil {
				t.Fatal(err)
			}
		}
		s := New(cfg, loglimit.New(slog.New(slog.DiscardHandler), nil), Inherited{})
		if listeners, err := s.Listen(); err == nil || err.Error() != want {
			closeAll(listeners)
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// More connections than files may be open are not promised.
func TestMaxClientsFitTheOpenFiles(t *testing.T) {
	var log bytes.Buffer
	s := New(config.New(), loglimit.New(slog.New(slog.NewTextHandler(&log, nil)), nil), Inherited{})
	wanted := int64(1 << 20)
	most, _ := s.mostClients(wanted)
	err := s.MayServe(wanted)
	if (err != nil) != (most < wanted) || err != nil && !strings.HasSuffix(err.Error(), fmt.Sprint("number of clients, try with ", most)) {
		t.Errorf("%d may be served: %v", most, err)
	}
	s.cfg.MaxClients.Put(wanted)
	s.fitDescriptors()
	if got := s.cfg.MaxClients.Get(); got != most || strings.Contains(log.String(), "maxclients lowered") != (most < wanted) {
		t.Errorf("maxclients %d, want %d; log %s", got, most, &log)
	}
	if err := s.MayServe(9); err != nil {
		t.Error(err)
	}
}

// door is a part that serves at addresses of its own.
func door(name string, addresses int, most int64) config.Part {
	var param *config.Param[int64]
	return config.Part{
		Rows: func(*config.Config) []config.Setting {
			return []config.Setting{{Name: name + "-max-connections", Value: config.In(&param, config.NewInt(most, 1, 1<<20, "n"))}}
		},
		Door: func() config.Door { return config.Door{Name: name, Addresses: addresses, MaxConnections: param} },
	}
}

// Each door that is open has its connections in the budget of files, at each address its own. Where files are few, clients have half of
// them.
func TestAllDoorsShareTheOpenFiles(t *testing.T) {
	var log bytes.Buffer
	cfg := config.New(door("http", 1, 1<<20), door("envoy", 3, 1<<20))
	s := New(cfg, loglimit.New(slog.New(slog.NewTextHandler(&log, nil)), nil), Inherited{})
	for _, of := range []struct{ all, clients, others, forClients, forOthers int64 }{
		{4064, 10000, 1000, 3064, 1000},
		{992, 10000, 4000, 496, 496},
		{992, 10000, 400, 592, 400},
		{992, 10, 4000, 10, 982},
		{1, 10000, 4000, 1, 1},
	} {
		if c, o := share(of.all, of.clients, of.others); c != of.forClients || o != of.forOthers {
			t.Errorf("%+v: %d and %d", of, c, o)
		}
	}
	s.cfg.MaxClients.Put(1 << 20)
	all, _ := transport.MostConnections(5<<20, s.cfg.IOThreads.Get())
	s.fitDescriptors()
	clients, others := s.cfg.MaxClients.Get(), s.otherConnections()
	if clients+others > all || clients < min(all/2, 1<<20) || others < min(all/2, 4<<20)-4 {
		t.Errorf("%d clients and %d other connections, where %d may be open", clients, others, all)
	}
	if all < 5<<20 && !strings.Contains(log.String(), " http_max_connections=") {
		t.Error(log.String())
	}
}
