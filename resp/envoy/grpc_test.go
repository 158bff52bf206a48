package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"celld/internal/celldtest"
	"celld/resp"
	"celld/resp/config"
	"celld/store"
)

// raw sends and receives messages as they are.
type raw struct{ encoding.CodecV2 }

func (raw) Marshal(from any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(from.(string))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, into any) error {
	*into.(*string) = string(data.Materialize())
	return nil
}
func (raw) Name() string { return "proto" }

// panicking panics where it should decide.
type panicking struct{ *world }

func (panicking) Decide([]store.TakeRequest, func(int) resp.Verdict) error { panic("inside") }

func TestGRPC(t *testing.T) {
	w := newWorld(t, config.EnvoyOptions{}, limits("a rate_limit: {unit: minute, requests_per_unit: 5}"))
	var panics []any
	w.panicked = func(cause any, _ string) { panics = append(panics, cause) }
	_, conn := serveGRPC(t, &w.service, newHealth(func() error { return nil }, make(chan struct{})))
	call := func(method, message string) (answer string, err error) {
		err = conn.Invoke(t.Context(), method, message, &answer, grpc.ForceCodecV2(raw{}))
		return answer, err
	}
	const good = "\x0a\x01d\x12\x08\x0a\x06\x0a\x01a\x12\x01x" // descriptor (a, x) of the domain d
	for _, of := range []struct {
		method, message string
		code            codes.Code
		about           string
	}{
		{shouldRateLimitMethod, good, codes.OK, "\x08\x01\x12\x0e\x08\x01\x12\x04\x08\x05\x10\x02\x18\x04\x22\x02\x08\x1e"},
		{shouldRateLimitMethod, "", codes.InvalidArgument, "rate limit domain must not be empty"},
		{shouldRateLimitMethod, "\x0a\x05d", codes.InvalidArgument, "read a RateLimitRequest: the message is cut off or damaged"},
		{shouldRateLimitMethod, "\x0a\x01\xff", codes.InvalidArgument, "read a RateLimitRequest: a text is not UTF-8"},
		{shouldRateLimitMethod, strings.Repeat("\x12\x00", 1001), codes.InvalidArgument, "read a RateLimitRequest: there are more than"},
		{shouldRateLimitMethod, strings.Repeat("x", mostMessage+1), codes.ResourceExhausted, "grpc: received message larger than max"},
		{"/envoy.service.ratelimit.v3.RateLimitService/Other", good, codes.Unimplemented, "unknown method"},
		{"/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit", good, codes.Unimplemented, "unknown service"},
		{grpc_health_v1.Health_Check_FullMethodName, "\xff", codes.Internal, "grpc: failed to unmarshal the received message"},
	} {
		answer, err := call(of.method, of.message)
		if err != nil {
			answer = status.Convert(err).Message()
		}
		if status.Code(err) != of.code || !strings.HasPrefix(answer, of.about) {
			t.Errorf("%s %.40q: got %v, %q, want %v, %q", of.method, of.message, status.Code(err), answer, of.code, of.about)
		}
	}
	if got := w.stats.serviceErrors.Load(); got != 4 {
		t.Errorf("%d wrong requests are counted", got)
	}
	if got := w.stats.methods[shouldRateLimit].calls.Load(); got != 5 {
		t.Errorf("%d calls are counted", got)
	}

	// A panic ends its call, and nothing else.
	w.limits = panicking{w}
	if answer, err := call(shouldRateLimitMethod, good); status.Code(err) != codes.Internal {
		t.Errorf("a panic: %q, %v", answer, err)
	}
	w.limits = w
	if answer, err := call(shouldRateLimitMethod, good); err != nil || len(panics) != 1 || panics[0] != "inside" {
		t.Errorf("after a panic: %q, %v; %v is logged", answer, err, panics)
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
	config := &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert}
	for san, ok := range map[string]bool{"": true, "envoy.mesh": true, "other.mesh": false} {
		here, there := net.Pipe()
		go func() {
			c := tls.Client(there, &tls.Config{Certificates: []tls.Certificate{client}, RootCAs: trusted, ServerName: "server",
				NextProtos: []string{"h2"}})
			_ = c.Handshake()
			_, _ = io.Copy(io.Discard, c)
		}()
		_, _, err := certificates{config: func() *tls.Config { return config }, san: san}.ServerHandshake(here)
		if (err == nil) != ok {
			t.Errorf("%q: %v", san, err)
		}
		here.Close()
		there.Close()
	}
}

// An age of 0 is for ever, as gRPC would take it for its default.
func TestAge(t *testing.T) {
	if ageOf(0) != math.MaxInt64 || ageOf(time.Hour) != time.Hour {
		t.Errorf("%v, %v", ageOf(0), ageOf(time.Hour))
	}
}
