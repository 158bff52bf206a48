// Package tls tests connections with TLS.
package tls

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// world is the certificates of a test: a server's, a client's, and one of an authority that the server does not know.
type world struct {
	ca, stranger           *celldtest.Authority
	cert, key, mine, myKey string
	theirs, theirKey       string
	old, oldKey            string // of a client, and expired
}

var forClients = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

func serverCert() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

func newWorld(t *testing.T) *world {
	w := &world{ca: celldtest.NewAuthority(t), stranger: celldtest.NewAuthority(t)}
	w.cert, w.key = w.ca.Sign("server", serverCert())
	w.mine, w.myKey = w.ca.Sign("app", &x509.Certificate{ExtKeyUsage: forClients})
	w.theirs, w.theirKey = w.stranger.Sign("app", &x509.Certificate{ExtKeyUsage: forClients})
	w.old, w.oldKey = w.ca.Sign("old", &x509.Certificate{ExtKeyUsage: forClients, NotAfter: time.Now().Add(-time.Minute)})
	return w
}

// start runs celld with a plain port and one with TLS.
func (w *world) start(t *testing.T, flags ...string) (srv *harness.Server, addr string) {
	t.Helper()
	port := harness.FreePort(t)
	srv = harness.Start(t, append([]string{"--port", harness.FreePort(t), "--tls-port", port, "--tls-cert-file", w.cert,
		"--tls-key-file", w.key, "--tls-ca-cert-file", w.ca.File}, flags...)...)
	return srv, "127.0.0.1:" + port
}

func dial(t *testing.T, addr string, config *tls.Config) (*harness.Conn, error) {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return &harness.Conn{Conn: conn, T: t, R: bufio.NewReader(conn)}, nil
}

// ping is an error where the connection does not come about. With TLS 1.3 a client hears only then that its certificate is refused.
func ping(t *testing.T, addr string, config *tls.Config) error {
	t.Helper()
	c, err := dial(t, addr, config)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.TryDo([]string{"PING"})
	if err == nil && got != "+PONG\r\n" {
		err = fmt.Errorf("PING: %q", got)
	}
	return err
}

// TestWhoMayConnect connects clients with good, bad and no certificates, by each version.
func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for mode, may := range map[string]map[string]bool{
		"yes": {"mine": true}, "optional": {"mine": true, "none": true}, "no": {"mine": true, "none": true, "theirs": true, "old": true},
	} {
		srv, addr := w.start(t, "--tls-auth-clients", mode)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for name, files := range map[string][2]string{
				"mine": {w.mine, w.myKey}, "none": {}, "theirs": {w.theirs, w.theirKey}, "old": {w.old, w.oldKey},
			} {
				config := w.ca.Client(files[0], files[1])
				config.MinVersion, config.MaxVersion = version, version
				if err := ping(t, addr, config); (err == nil) != may[name] {
					t.Errorf("tls-auth-clients %s, certificate %s, %s: %v", mode, name, tls.VersionName(version), err)
				}
			}
		}
		if err := ping(t, addr, &tls.Config{}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("a client that does not know the authority: %v", err)
		}
		srv.Alive() // on the plain port
	}
}

// TestVersionsAndCiphers checks that celld serves only the configured versions and ciphers.
func TestVersionsAndCiphers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, addr := w.start(t, "--tls-auth-clients", "no", "--tls-protocols", "TLSv1.2", "--tls-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305")
	config := w.ca.Client("", "")
	c, err := dial(t, addr, config)
	if err != nil {
		t.Fatal(err)
	}
	state := c.Conn.(*tls.Conn).ConnectionState()
	if state.Version != tls.VersionTLS12 || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 {
		t.Errorf("%s, %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
	}
	config.MinVersion = tls.VersionTLS13
	if ping(t, addr, config) == nil {
		t.Error("TLS 1.3 is served")
	}
	_, addr = w.start(t, "--tls-auth-clients", "no", "--tls-protocols", "TLSv1.3")
	config.MinVersion, config.MaxVersion = 0, tls.VersionTLS12
	if ping(t, addr, config) == nil {
		t.Error("TLS 1.2 is served")
	}
}

// TestOnlyTLS starts a server without a plain port.
func TestOnlyTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--port", "0", "--tls-auth-clients", "no")
	_, port := harness.HostPort(addr)
	if len(srv.Addrs) == 0 || srv.Addrs[0] != "tls:"+addr {
		t.Errorf("it listens on %q", srv.Addrs)
	}
	for _, a := range srv.Addrs {
		if !strings.HasPrefix(a, "tls:") {
			t.Errorf("it listens on %q", srv.Addrs)
		}
	}
	c, err := dial(t, addr, w.ca.Client("", ""))
	if err != nil {
		t.Fatal(err)
	}
	info := c.Do("INFO")
	for _, want := range []string{
		"tcp_port:" + port + "\r\n", "listener2:name=tls,bind=127.0.0.1", "tls_cert_not_after:1", "files_refused:0\r\n",
	} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO has no %q", want)
		}
	}
	if strings.Contains(info, "listener0:") {
		t.Error("INFO has a plain listener")
	}
	for _, command := range []string{"ping", "ready"} {
		if out, stderr, code := harness.RunToEnd(t, nil, command, "--port", "0", "--tls-port", port); code != 0 || out != "" {
			t.Errorf("celld %s: %d, %q, %q", command, code, out, stderr)
		}
	}
}

// TestProbes probes a server that asks for a certificate. celld ping finds it alive without one, celld ready needs one.
func TestProbes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, addr := w.start(t, "--port", "0", "--requirepass", "sesame")
	_, port := harness.HostPort(addr)
	flags := []string{"--port", "0", "--tls-port", port, "--requirepass", "sesame", "--tls-cert-file", w.cert, "--tls-key-file", w.key}
	out, stderr, code := harness.RunToEnd(t, nil, append([]string{"ping"}, flags...)...)
	if code != 0 || !strings.Contains(out, "certificate") {
		t.Errorf("celld ping: %d, %q, %q", code, out, stderr)
	}
	_, stderr, code = harness.RunToEnd(t, nil, append([]string{"ready"}, flags...)...)
	if code != 1 || !strings.Contains(stderr, "certificate") {
		t.Errorf("celld ready: %d, %q", code, stderr)
	}
	locked := t.TempDir() + "/locked.key"
	harness.Tool(t, "openssl", "pkcs8", "-topk8", "-in", w.myKey, "-out", locked, "-passout", "pass:swordfish")
	for key, pass := range map[string]string{w.myKey: "", locked: "swordfish"} {
		own := append(flags, "--tls-client-cert-file", w.mine, "--tls-client-key-file", key, "--tls-key-file-pass", pass)
		for _, command := range []string{"ping", "ready"} {
			if out, stderr, code := harness.RunToEnd(t, nil, append([]string{command}, own...)...); code != 0 || out != "" {
				t.Errorf("celld %s with a certificate: %d, %q, %q", command, code, out, stderr)
			}
		}
	}
}

// TestTheWrongPort sends plain bytes where TLS is, and TLS where it is not.
func TestTheWrongPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, addr := w.start(t, "--tls-auth-clients", "no")
	c := harness.Dial(t, addr)
	if got := c.Do("PING"); got != "-ERR this port takes TLS only\r\n" {
		t.Errorf("PING: %q", got)
	}
	c.Closed()
	conn, err := net.Dial("tcp", srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil || os.IsTimeout(err) {
		t.Errorf("TLS on the plain port: %v", err)
	}
	srv.Logs("a TLS handshake failed")
	srv.Alive()
}

// TestBadTLSFlags looks for one line for each mistake.
func TestBadTLSFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	whole := []string{"--tls-port", "1", "--tls-cert-file", w.cert, "--tls-key-file", w.key, "--tls-ca-cert-file", w.ca.File}
	for _, test := range []struct {
		names string
		args  []string
	}{
		{"--tls-cert-file", []string{"--tls-port", "1"}},
		{"--tls-ca-cert-file", whole[:6]},
		{"tls-port", whole[2:]},
		{"private key does not match", append(whole, "--tls-key-file", w.myKey)},
		{"/nosuch", append(whole, "--tls-cert-file", "/nosuch")},
		{"no certificate in PEM", append(whole, "--tls-ca-cert-file", w.key)},
		{"TLSv1.2", append(whole, "--tls-protocols", "TLSv1.1")},
		{"ECDHE-RSA-AES128-GCM-SHA256", append(whole, "--tls-ciphers", "DEFAULT:!MEDIUM")},
		{"Go chooses", append(whole, "--tls-ciphersuites", "TLS_AES_128_GCM_SHA256")},
		{"yes, no, optional", append(whole, "--tls-auth-clients", "perhaps")},
		{"needs certificates", append(whole, "--tls-auth-clients", "no", "--tls-auth-clients-user", "CN")},
		{"off, CN, URI", append(whole, "--tls-auth-clients-user", "DNS")},
		{"given together", append(whole, "--tls-client-cert-file", w.mine)},
	} {
		_, stderr, code := harness.RunToEnd(t, nil, test.args...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.names) {
			t.Errorf("%q: code %d, %q; want %q", test.args, code, stderr, test.names)
		}
	}
}

// A client that says its farewell gives a wait up, though its socket stays open, in memory and on an engine: nothing is taken for it.
func TestAFarewellEndsAWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	redis := celldtest.StartRedis(t)
	for _, flags := range [][]string{
		{"--wait-max", "3600000"}, {"--wait-max", "3600000", "--store", "unix://" + strings.TrimPrefix(redis, "unix:")},
	} {
		srv, addr := w.start(t, flags...)
		plain := harness.Dial(t, srv.Addr)
		celldtest.Eventually(t, "a call is decided", func() bool {
			return strings.HasPrefix(plain.Do("CL.TAKE", "k", "1/1h"), "*7\r\n:1\r\n")
		})
		c, err := dial(t, addr, w.ca.Client(w.mine, w.myKey))
		if err != nil {
			t.Fatal(err)
		}
		c.Send([]byte("CL.TAKE k 1/1h WAIT 3600000\r\n"))
		celldtest.Eventually(t, "it waits", func() bool {
			return strings.Contains(plain.Do("INFO", "clients"), "\r\nblocked_clients:1\r\n")
		})
		_ = c.Conn.(*tls.Conn).CloseWrite()
		celldtest.Eventually(t, "it has left", func() bool {
			return strings.Contains(plain.Do("INFO", "clients"), "\r\nblocked_clients:0\r\n")
		})
		if got := plain.Do("CL.TAKE", "k", "1/1h", "PEEK"); !strings.HasPrefix(got, "*7\r\n:1\r\n:1\r\n:0\r\n:35") {
			t.Errorf("%q", got)
		}
	}
}
