package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// secure is a celld that serves gRPC by TLS, and who vouches for whom.
type secure struct {
	*served
	ca        *celldtest.Authority
	cert, key string
}

func serverCert() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

func clientCert(names ...string) *x509.Certificate {
	return &x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

func startSecure(t *testing.T, flags ...string) *secure {
	t.Helper()
	s := &secure{ca: celldtest.NewAuthority(t)}
	s.cert, s.key = s.ca.Sign("server", serverCert())
	s.served = start(t, shop, append(
		[]string{"--envoy-tls", "yes", "--tls-cert-file", s.cert, "--tls-key-file", s.key, "--tls-ca-cert-file", s.ca.File}, flags...)...)
	return s
}

// try asks once, without waiting for a connection that may come.
func try(t *testing.T, s *secure, with ...*tls.Config) string {
	t.Helper()
	return told(dial(t, s.grpc, with...).ShouldRateLimit(t.Context(), request("shop", "nobody=knows")))
}

// TestTLSClients: the same clients may connect as with RESP, and with --envoy-tls-client-san those alone that have the name.
func TestTLSClients(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flags []string
		may   string
	}{
		{nil, "mine other"}, // the certificate is needed by default
		{[]string{"--tls-auth-clients", "yes"}, "mine other"},
		{[]string{"--tls-auth-clients", "optional"}, "mine other none"},
		{[]string{"--tls-auth-clients", "no"}, "mine other none theirs old"},
		{[]string{"--envoy-tls-client-san", "envoy.mesh"}, "mine"},
		{[]string{"--envoy-tls-client-san", "other.mesh"}, "other"},
		{[]string{"--envoy-tls-client-san", "third.mesh"}, ""},
	} {
		t.Run(strings.Join(test.flags, " "), func(t *testing.T) {
			t.Parallel()
			s := startSecure(t, test.flags...)
			files := map[string][2]string{"none": {}}
			sign := func(name string, ca *celldtest.Authority, c *x509.Certificate) {
				cert, key := ca.Sign(name, c)
				files[name] = [2]string{cert, key}
			}
			old := clientCert("envoy.mesh")
			old.NotAfter = time.Now().Add(-time.Minute)
			sign("mine", s.ca, clientCert("more.mesh", "envoy.mesh"))
			sign("other", s.ca, clientCert("other.mesh"))
			sign("theirs", celldtest.NewAuthority(t), clientCert("envoy.mesh", "third.mesh"))
			sign("old", s.ca, old)
			for name, pair := range files {
				got, may := try(t, s, s.ca.Client(pair[0], pair[1])), strings.Contains(test.may, name)
				if (got == noLimit) != may {
					t.Errorf("certificate %s: %s; want it served: %v", name, got, may)
				}
			}
			if got := try(t, s); got == noLimit { // the client's default is no TLS
				t.Error("a call in the clear is answered")
			}
			if got := try(t, s, celldtest.NewAuthority(t).Client(files["mine"][0], files["mine"][1])); got == noLimit {
				t.Error("a client that trusts another is served")
			}
		})
	}
}

// TestTLSRenewal: new connections get a renewed certificate, open ones stay. A bad pair changes nothing. The authority is renewed, too.
func TestTLSRenewal(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	mine, myKey := s.ca.Sign("app", clientCert())
	trusting := s.ca.Client(mine, myKey)
	name := func() string {
		conn, err := tls.Dial("tcp", s.grpc, trusting)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "server" {
		t.Fatal(got)
	}
	open := dial(t, s.grpc, trusting)
	expect(t, open, "client=ann", firstOf2)
	renew := func(certFile, keyFile string) {
		celldtest.WriteFile(t, celldtest.ReadFile(t, keyFile), s.key)
		celldtest.WriteFile(t, celldtest.ReadFile(t, certFile), s.cert)
	}
	renew(s.ca.Sign("renewed", serverCert()))
	celldtest.Eventually(t, "a renewed certificate", func() bool { return name() == "renewed" })
	expect(t, open, "client=ann", secondOf2)
	bad, _ := s.ca.Sign("bad", serverCert())
	celldtest.WriteFile(t, celldtest.ReadFile(t, bad), s.cert)
	s.Logs("a file is refused")
	if got := name(); got != "renewed" {
		t.Errorf("after a bad pair: %s", got)
	}
	renew(s.ca.Sign("third", serverCert()))
	if said := s.reload(); !strings.Contains(said, `"setting":"tls-cert-file"`) || name() != "third" {
		t.Errorf("SIGHUP takes no certificate at once: %s\n%s", name(), said)
	}
	celldtest.WriteFile(t, celldtest.ReadFile(t, celldtest.NewAuthority(t).File), s.ca.File)
	s.reload()
	if got := try(t, s, trusting); got == noLimit {
		t.Error("a client whose authority is gone is served")
	}
	expect(t, open, "client=ann", overOf2)
}

// TestTLSMistakes: each is a line at the start.
func TestTLSMistakes(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", serverCert())
	file := t.TempDir() + "/limits.yaml"
	celldtest.WriteFile(t, shop, file)
	on, pair := []string{"--envoy-bind", "127.0.0.1:0", "--envoy-config", file}, []string{"--tls-cert-file", cert, "--tls-key-file", key}
	for _, test := range []struct {
		says string
		args [][]string
	}{
		{"--envoy-tls needs --tls-cert-file and --tls-key-file", [][]string{on, {"--envoy-tls", "yes"}}},
		{"--envoy-tls needs --tls-ca-cert-file", [][]string{on, pair, {"--envoy-tls", "yes"}}},
		{"--envoy-tls is for --envoy-bind, which is not set", [][]string{pair, {"--envoy-tls", "yes", "--tls-auth-clients", "no"}}},
		{"/nosuch", [][]string{on, pair, {"--envoy-tls", "yes", "--tls-auth-clients", "no", "--tls-key-file", "/nosuch"}}},
		{"or --envoy-tls, which are not set", [][]string{on, pair}},
		{"--envoy-tls-client-san needs the certificates of clients", [][]string{on, pair,
			{"--envoy-tls", "yes", "--tls-auth-clients", "no", "--envoy-tls-client-san", "x"}}},
		{"--envoy-bind and --envoy-http-bind need --envoy-config", [][]string{on[:2]}},
		{"--envoy-config and --envoy-xds are for --envoy-bind or --envoy-http-bind", [][]string{on[2:]}},
		{"--envoy-metrics-bind is for --envoy-bind", [][]string{{"--envoy-metrics-bind", "127.0.0.1:0"}}},
		{"--envoy-config: ", [][]string{on, {"--envoy-config", "/nosuch"}}},
		{"argument must be host:port, such as 127.0.0.1:8081 or *:8081, or unix:///path", [][]string{on, {"--envoy-bind", "unix://x"}}},
		{"argument must be three names", [][]string{on, {"--envoy-headers", "A B"}}},
		{"argument must be names of headers", [][]string{on, {"--envoy-headers", "A B C:"}}},
		{"argument must be from 0 to 1", [][]string{on, {"--envoy-near-limit", "80"}}},
	} {
		args := append([]string{"--port", "0"}, slices.Concat(test.args...)...)
		_, stderr, code := harness.RunToEnd(t, nil, args...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.says) {
			t.Errorf("%q: code %d, %q; want %q", args, code, stderr, test.says)
		}
	}
}
