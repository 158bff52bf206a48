package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/door"
	"celld/resp/envoy/grpc"
	"celld/store"
)

const (
	shouldRateLimitPath = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	healthCheckPath     = "/grpc.health.v1.Health/Check"
)

// serveGRPC serves a service by gRPC, and returns a client of it.
func serveGRPC(t *testing.T, s *service, h *health, waits bool) (*grpc.Server, *celldtest.GRPC) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, served := newGRPC(s, h, waits), make(chan struct{})
	go func() {
		server.Serve(ln)
		close(served)
	}()
	t.Cleanup(func() {
		server.Shutdown(celldtest.Ended())
		<-served
	})
	return server, celldtest.DialGRPC(t, ln.Addr().String())
}

// panicking panics where it should decide.
type panicking struct{ *world }

func (panicking) Decide([]store.TakeRequest, func(int) door.Verdict) error { panic("inside") }

// TestCalls: each call is answered or refused, is counted, and a panic ends only its own; also where calls are answered beside each other.
func TestCalls(t *testing.T) {
	for _, waits := range []bool{false, true} {
		testCalls(t, waits)
	}
}

func testCalls(t *testing.T, waits bool) {
	w := newWorld(t, Options{}, limits("a rate_limit: {unit: minute, requests_per_unit: 5}"))
	var panics []any
	w.panicked = func(cause any, _ string, _ ...any) { panics = append(panics, cause) }
	_, client := serveGRPC(t, &w.service, &health{w.stats, func() error { return nil }}, waits)
	const good = "\x0a\x01d\x12\x08\x0a\x06\x0a\x01a\x12\x01x" // descriptor (a, x) of the domain d
	for _, of := range []struct {
		path, message string
		code          grpc.Code
		about         string
	}{
		{shouldRateLimitPath, good, grpc.OK, "\x08\x01\x12\x0e\x08\x01\x12\x04\x08\x05\x10\x02\x18\x04\x22\x02\x08\x1e"},
		{shouldRateLimitPath, "", grpc.InvalidArgument, "rate limit domain must not be empty"},
		{shouldRateLimitPath, "\x0a\x05d", grpc.InvalidArgument, "read a RateLimitRequest: the message is cut off or damaged"},
		{shouldRateLimitPath, "\x0a\x01\xff", grpc.InvalidArgument, "read a RateLimitRequest: a text is not UTF-8"},
		{shouldRateLimitPath, strings.Repeat("\x12\x00", 1001), grpc.InvalidArgument, "read a RateLimitRequest: there are more than"},
		{"/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit", good, grpc.Unimplemented, "unknown service"},
		{healthCheckPath, "", grpc.OK, "\x08\x01"},
		{healthCheckPath, "\xff", grpc.InvalidArgument, "read a HealthCheckRequest: the message is cut off or damaged"},
	} {
		answer, code, about := client.Call(t, of.path, of.message)
		if grpc.Code(code) != of.code || !strings.HasPrefix(answer+about, of.about) {
			t.Errorf("%s %.40q: got %d, %q, want %d, %q", of.path, of.message, code, answer+about, of.code, of.about)
		}
	}
	if got := w.stats.serviceErrors.Load(); got != 4 {
		t.Errorf("%d wrong requests are counted", got)
	}
	for method, want := range map[int]int64{shouldRateLimit: 5, check: 2} {
		if got := w.stats.methods[method].calls.Load(); got != want {
			t.Errorf("%d calls of %s are counted, want %d", got, w.stats.methods[method].name, want)
		}
	}

	w.limits = panicking{w}
	if answer, code, _ := client.Call(t, shouldRateLimitPath, good); grpc.Code(code) != grpc.Internal {
		t.Errorf("a panic: %d, %q", code, answer)
	}
	w.limits = w
	if _, code, about := client.Call(t, shouldRateLimitPath, good); code != 0 || len(panics) != 1 || panics[0] != "inside" {
		t.Errorf("after a panic: %d, %q; %v is logged", code, about, panics)
	}
}

// A client's certificate must have the name, where one is asked for.
func TestClientName(t *testing.T) {
	authority := celldtest.NewAuthority(t)
	pair := func(name string, c *x509.Certificate) tls.Certificate {
		cert, err := tls.LoadX509KeyPair(authority.Sign(name, c))
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	server := pair("server", &x509.Certificate{DNSNames: []string{"server"}})
	client := pair("client", &x509.Certificate{
		DNSNames: []string{"envoy.mesh"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(celldtest.ReadFile(t, authority.File)))
	ours := &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert}
	for san, ok := range map[string]bool{"": true, "envoy.mesh": true, "other.mesh": false} {
		s := service{options: Options{TLS: func() *tls.Config { return ours }, ClientSAN: san}}
		here, there := net.Pipe()
		go func() {
			c := tls.Client(there, &tls.Config{Certificates: []tls.Certificate{client}, RootCAs: trusted, ServerName: "server",
				NextProtos: []string{"h2"}})
			_ = c.Handshake()
			_, _ = io.Copy(io.Discard, c)
		}()
		secure := tls.Server(here, s.certificates())
		err := secure.Handshake()
		if (err == nil) != ok {
			t.Errorf("%q: %v", san, err)
		}
		if got := secure.ConnectionState().NegotiatedProtocol; ok && got != "h2" {
			t.Errorf("%q: the protocol is %q", san, got)
		}
		here.Close()
		there.Close()
	}
}
