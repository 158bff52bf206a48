package web

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// secure is a celld that serves HTTP by TLS, and who vouches for whom.
type secure struct {
	*harness.Server
	ca        *celldtest.Authority
	cert, key string
}

func serverCert() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

func clientCert() *x509.Certificate {
	return &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

func startSecure(t *testing.T, flags ...string) *secure {
	t.Helper()
	s := &secure{ca: celldtest.NewAuthority(t)}
	s.cert, s.key = s.ca.Sign("server", serverCert())
	s.Server = start(t, append(
		[]string{"--http-tls", "yes", "--tls-cert-file", s.cert, "--tls-key-file", s.key, "--tls-ca-cert-file", s.ca.File}, flags...)...)
	return s
}

// client trusts the authority. It shows a certificate whose file is not empty, whoever has signed it.
func (s *secure) client(t *testing.T, cert, key string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, s.ca.File)))
	config := &tls.Config{RootCAs: pool, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: harness.ReplyTimeout}
}

// get returns what is answered, and the server's certificate.
func (s *secure) get(client *http.Client, path string) (status int, body string, by *tls.ConnectionState, err error) {
	answer, err := client.Get("https://" + s.HTTP() + path)
	if err != nil {
		return 0, "", nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), answer.TLS, err
}

// The same clients may connect as with RESP. Without --tls-port there is no RESP with TLS.
func TestHTTPSClients(t *testing.T) {
	t.Parallel()
	for mode, may := range map[string]map[string]bool{
		"yes": {"mine": true}, "optional": {"mine": true, "none": true}, "no": {"mine": true, "none": true, "theirs": true, "old": true},
	} {
		srv := startSecure(t, "--tls-auth-clients", mode)
		files := map[string][2]string{"none": {}}
		sign := func(name string, ca *celldtest.Authority, c *x509.Certificate) {
			cert, key := ca.Sign(name, c)
			files[name] = [2]string{cert, key}
		}
		old := clientCert()
		old.NotAfter = time.Now().Add(-time.Minute)
		sign("mine", srv.ca, clientCert())
		sign("theirs", celldtest.NewAuthority(t), clientCert())
		sign("old", srv.ca, old)
		failed := 0
		for name, pair := range files {
			status, body, _, err := srv.get(srv.client(t, pair[0], pair[1]), "/livez")
			if got := err == nil && status == 200 && body == "ok\n"; got != may[name] {
				t.Errorf("tls-auth-clients %s, certificate %s: %d, %q, %v", mode, name, status, body, err)
			}
			if !may[name] {
				failed++
			}
		}
		c := harness.Dial(t, srv.Addr)
		celldtest.Eventually(t, "failed handshakes are counted", func() bool {
			return strings.Contains(c.Do("INFO", "stats"), fmt.Sprintf("tls_handshake_failures:%d\r\n", failed))
		})
		if failed > 0 {
			srv.Logs("a TLS handshake of the HTTP port failed", "127.0.0.1:")
		}
		if info := c.Do("INFO"); strings.Contains(info, "listener2:") || !strings.Contains(info, "tls_cert_not_after:1") {
			t.Errorf("INFO: %q", info)
		}
	}
}

// A plain request is answered in plain text. A look at the port is no failure.
func TestPlainRequestToHTTPS(t *testing.T) {
	t.Parallel()
	srv := startSecure(t, "--tls-auth-clients", "no", "--http-max-connections", "3")
	harness.Dial(t, srv.HTTP()).Close()
	conn := harness.Dial(t, srv.HTTP())
	conn.Send([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"))
	answer, err := http.ReadResponse(conn.R, nil)
	if err != nil || answer.StatusCode != 400 {
		t.Fatalf("%v, %v", answer, err)
	}
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), "HTTPS") {
		t.Errorf("%q, %v", body, err)
	}
	srv.Logs("a TLS handshake of the HTTP port failed")
	c := harness.Dial(t, srv.Addr)
	if info := c.Do("INFO", "stats"); !strings.Contains(info, "tls_handshake_failures:1\r\n") {
		t.Errorf("%q", info)
	}
	for range 3 {
		harness.Dial(t, srv.HTTP())
	}
	harness.Dial(t, srv.HTTP()).Closed()
}

// New connections get a renewed certificate, open ones stay. A bad pair changes nothing. A client whose authority is gone
// cannot resume its session.
func TestHTTPSRenewal(t *testing.T) {
	t.Parallel()
	srv := startSecure(t)
	mine, myKey := srv.ca.Sign("app", clientCert())
	client := srv.client(t, mine, myKey)
	names := func(client *http.Client) (name string, resumed bool) {
		client.CloseIdleConnections()
		_, _, by, err := srv.get(client, "/livez")
		if err != nil {
			return err.Error(), false
		}
		return by.PeerCertificates[0].Subject.CommonName, by.DidResume
	}
	if name, _ := names(client); name != "server" {
		t.Fatal(name)
	}
	if name, resumed := names(client); name != "server" || !resumed {
		t.Errorf("%s, resumed: %v", name, resumed)
	}
	open := srv.client(t, mine, myKey)
	if status, _, _, err := srv.get(open, "/livez"); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	renew := func(certFile, keyFile string) {
		celldtest.WriteFile(t, celldtest.ReadFile(t, keyFile), srv.key)
		celldtest.WriteFile(t, celldtest.ReadFile(t, certFile), srv.cert)
	}
	renew(srv.ca.Sign("renewed", serverCert()))
	celldtest.Eventually(t, "a renewed certificate", func() bool { name, _ := names(client); return name == "renewed" })
	if _, _, by, err := srv.get(open, "/livez"); err != nil || by.PeerCertificates[0].Subject.CommonName != "server" {
		t.Errorf("the open connection: %v", err)
	}
	stranger := celldtest.NewAuthority(t)
	badCert, _ := srv.ca.Sign("bad", serverCert())
	celldtest.WriteFile(t, celldtest.ReadFile(t, badCert), srv.cert)
	srv.Logs("a file is refused")
	if name, resumed := names(client); name != "renewed" || !resumed {
		t.Errorf("after a bad pair: %s, resumed: %v", name, resumed)
	}
	celldtest.WriteFile(t, celldtest.ReadFile(t, stranger.File), srv.ca.File)
	renew(srv.ca.Sign("last", serverCert()))
	celldtest.Eventually(t, "an authority is gone", func() bool { name, _ := names(client); return strings.Contains(name, "tls: ") })
}

// Mistakes are one line at the start.
func TestBadHTTPSFlags(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", serverCert())
	pair := []string{"--tls-cert-file", cert, "--tls-key-file", key}
	for _, test := range []struct {
		names string
		args  []string
	}{
		{"--http-tls needs --tls-cert-file and --tls-key-file", []string{"--http-bind", "127.0.0.1:0"}},
		{"--http-tls needs --tls-ca-cert-file", append(pair, "--http-bind", "127.0.0.1:0")},
		{"--http-tls is for --http-bind", append(pair, "--tls-auth-clients", "no")},
		{"/nosuch", append(pair, "--http-bind", "127.0.0.1:0", "--tls-auth-clients", "no", "--tls-key-file", "/nosuch")},
		{"is for --tls-port, --http-tls or --envoy-tls", append(pair, "--http-bind", "127.0.0.1:0", "--http-tls", "no")},
	} {
		args := append([]string{"--http-tls", "yes"}, test.args...)
		_, stderr, code := harness.RunToEnd(t, nil, args...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.names) {
			t.Errorf("%q: code %d, %q; want %q", args, code, stderr, test.names)
		}
	}
}

// The token is needed by TLS, too, and what needs none is served.
func TestHTTPSToken(t *testing.T) {
	t.Parallel()
	srv := startSecure(t, "--tls-auth-clients", "no", "--http-token-file", tokenFile(t, "secret"))
	client := srv.client(t, "", "")
	for path, want := range map[string]int{"/metrics": 401, "/livez": 200, "/readyz": 200} {
		if status, body, _, err := srv.get(client, path); status != want || err != nil {
			t.Errorf("%s: %d %q %v", path, status, body, err)
		}
	}
	conn, err := tls.Dial("tcp", srv.HTTP(), client.Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n")
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != 404 {
		t.Errorf("%v, %v", answer, err)
	}
}
