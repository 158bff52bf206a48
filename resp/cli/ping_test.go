package cli

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/config"
)

// serveReply answers each line PING by a line, and each line INFO by what follows it, until the test ends.
func serveReply(t *testing.T, network, addr, reply string) net.Addr {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				ping, info, _ := strings.Cut(reply, "|")
				for lines.Scan() {
					switch lines.Text() {
					case "PING":
						_, _ = io.WriteString(conn, ping+"\r\n")
					case "AUTH":
						_, _ = io.WriteString(conn, "+OK\r\n")
					case "INFO":
						if info == "gone" {
							return
						}
						_, _ = fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(info), info)
					}
				}
			}()
		}
	}()
	return ln.Addr()
}

// Any address that answers will do, wherever it stands in the list.
func TestPing(t *testing.T) {
	_, port, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "+PONG").String())
	_, loading, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "-LOADING Redis is loading the dataset in memory").String())
	_, busy, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "-BUSY Redis is busy running a script.").String())
	_, other, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "-ERR no").String())
	_, full, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "-ERR max number of clients reached").String())
	_, locked, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "-NOAUTH Authentication required.").String())
	_, web, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "HTTP/1.1 400 Bad Request").String())
	_, away, _ := net.SplitHostPort(
		serveReply(t, "tcp", "127.0.0.1:0", "+PONG|# Server\r\nx:y\r\nnot_ready_because:it is gone\r\nx:y\r\n").String())
	_, there, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "+PONG|# Server\r\nx:y\r\n").String())
	_, part, _ := net.SplitHostPort(
		serveReply(t, "tcp", "127.0.0.1:0", "+PONG|# Store\r\nstore_away:0\r\nstore_slots_without_master:1\r\n").String())
	_, leaves, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "+PONG|gone").String())
	path := filepath.Join(t.TempDir(), "s")
	serveReply(t, "unix", path, "+PONG")
	for _, test := range []struct {
		flags string
		ready bool
		fails string // what the error says
	}{
		{"--bind=127.0.0.1 --port=" + port, true, ""},
		{"--bind=-192.0.2.1,127.0.0.1 --port=" + port, true, ""},
		{"--bind=127.0.0.1,-192.0.2.1 --port=" + port, true, ""},
		{"--bind=* --port=" + port, true, ""},
		{"--bind=0.0.0.0 --port=" + port, true, ""},
		{"--bind=127.0.0.1 --port=" + port + " --requirepass=x", true, ""},
		{"--bind=127.0.0.1 --port=" + port + " --probe-user=u --probe-password=x", true, ""},
		{"--bind=-192.0.2.1 --port=" + port, false, "192.0.2.1"},
		{"--bind=-192.0.2.1,127.0.0.3 --port=" + port, false, "127.0.0.3"},
		{"--bind=127.0.0.1 --port=" + loading, false, ""},
		{"--bind=127.0.0.1 --port=" + loading, true, "-LOADING"},
		{"--bind=127.0.0.1 --port=" + busy, false, ""},
		{"--bind=127.0.0.1 --port=" + busy, true, "-BUSY"},
		{"--bind=127.0.0.1 --port=" + part, true, ""},
		{"--bind=127.0.0.1 --port=" + full, false, ""},
		{"--bind=127.0.0.1 --port=" + full, true, "-ERR max"},
		{"--bind=127.0.0.1 --port=" + locked, false, ""},
		{"--bind=127.0.0.1 --port=" + locked, true, "-NOAUTH"},
		{"--bind=127.0.0.1 --port=" + other, false, "-ERR no"},
		{"--bind=127.0.0.1 --port=" + web, false, "not a reply of Redis: \"HTTP/1.1 400 Bad Request"},
		{"--bind=127.0.0.1 --port=" + away, false, ""},
		{"--bind=127.0.0.1 --port=" + away, true, "it is not ready: it is gone"},
		{"--bind=127.0.0.1 --port=" + there, true, ""},
		{"--bind=127.0.0.1 --port=" + leaves, false, ""},
		{"--bind=127.0.0.1 --port=" + leaves, true, "EOF"},
		{"--port=0", false, "--port 0"},
		{"--unixsocket=" + path, true, ""},
		{"--unixsocket=" + path + " --port=" + other, true, ""},
		{"--unixsocket=/nosuch/socket --port=" + port, true, ""},
		{"--unixsocket=/nosuch/socket", true, "/nosuch/socket"},
	} {
		cfg := config.New()
		flags := defineFlags(cfg)
		if err := flags.Parse(strings.Fields(test.flags)); err != nil {
			t.Fatal(err)
		}
		var err error
		text := printed(t, func() { err = ping(cfg, flags, test.ready) })
		says := map[string]string{loading: "-LOADING Redis is loading the dataset in memory\n",
			busy: "-BUSY Redis is busy running a script.\n",
			full: "-ERR max number of clients reached\n", locked: "-NOAUTH Authentication required.\n"}
		want := says[flags.Lookup("port").Value.String()]
		if test.ready {
			want = ""
		}
		if strings.HasSuffix(test.flags, part) {
			want = "1 slots of the engine's Cluster have no master\n"
		}
		if text != want {
			t.Errorf("%s, ready %v: prints %q", test.flags, test.ready, text)
		}
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s, ready %v: %v, want %q", test.flags, test.ready, err, test.fails)
		}
	}
}

// A server with TLS is asked there only if its other addresses do not answer: else its log has a failed handshake for each probe.
func TestPingLeavesNoHandshakeBehind(t *testing.T) {
	host, port, _ := net.SplitHostPort(serveReply(t, "tcp", "127.0.0.1:0", "+PONG").String())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialed := make(chan struct{}, 1)
	go func() {
		if conn, err := ln.Accept(); err == nil {
			conn.Close()
			dialed <- struct{}{}
		}
	}()
	_, secure, _ := net.SplitHostPort(ln.Addr().String())
	places := []place{{host: host, port: port}, {host: host, port: secure, secure: &tls.Config{InsecureSkipVerify: true}}}
	if err := probe(places, nil, false, time.Hour); err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	select {
	case <-dialed:
		t.Error("the port with TLS was asked as well")
	default:
	}
	if err := probe(places[1:], nil, false, time.Hour); err == nil { // alone, it is asked at once: the hour is not waited for
		t.Error("a closed port answered")
	}
}

func TestPingHost(t *testing.T) {
	for host, want := range map[string]string{
		"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::*": "::1", "::": "::1", "192.0.2.1": "192.0.2.1", "name": "name", "::1": "::1",
	} {
		if got := pingHost(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// A server with TLS sees the certificate that the flags name. One that wants another is alive, and not ready.
func TestPingWithTLS(t *testing.T) {
	ca := celldtest.NewAuthority(t)
	serverCert, serverKey := ca.Sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	clientCert, clientKey := ca.Sign("client", &x509.Certificate{})
	own, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, ca.File)))
	ln, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					switch lines.Text() {
					case "PING":
						_, _ = io.WriteString(conn, "+PONG\r\n")
					case "INFO":
						_, _ = io.WriteString(conn, "$0\r\n\r\n")
					}
				}
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for _, test := range []struct {
		flags        string
		alive, ready bool
	}{
		{"--tls-client-cert-file=" + clientCert + " --tls-client-key-file=" + clientKey, true, true},
		{"--tls-cert-file=" + clientCert + " --tls-key-file=" + clientKey, true, true},
		{"", true, false},
	} {
		for ready, want := range map[bool]bool{false: test.alive, true: test.ready} {
			cfg := config.New()
			flags := defineFlags(cfg)
			if err := flags.Parse(strings.Fields("--bind=127.0.0.1 --port=0 --tls-port=" + port + " " + test.flags)); err != nil {
				t.Fatal(err)
			}
			var err error
			text := printed(t, func() { err = ping(cfg, flags, ready) })
			if (err == nil) != want || (text != "") != (test.flags == "" && !ready) {
				t.Errorf("%s, ready %v: %v, %q", test.flags, ready, err, text)
			}
		}
	}
}
