package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const configURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// control is an xDS server, by gRPC's own library. Each stream is served by what comes from streams.
type control struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	addr    string
	server  *grpc.Server
	streams chan *stream
	passes  atomic.Int64 // how many more bytes its connection sends before it ends
}

// listener makes a control's connections end so.
type listener struct {
	net.Listener
	of *control
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.of.passes.Store(math.MaxInt64)
	return ending{conn, l.of}, err
}

type ending struct {
	net.Conn
	of *control
}

func (c ending) Write(b []byte) (int, error) {
	if left := c.of.passes.Add(-int64(len(b))); left < 0 {
		_, _ = c.Conn.Write(b[:max(0, left+int64(len(b)))])
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// stream is one call.
type stream struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	t    *testing.T
	ends chan struct{} // closed: the server ends it
}

func (c *control) StreamAggregatedResources(s discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	one := &stream{s, nil, make(chan struct{})}
	select {
	case c.streams <- one:
	case <-s.Context().Done():
		return s.Context().Err()
	}
	select {
	case <-one.ends:
	case <-s.Context().Done():
	}
	return nil
}

// startControl starts one at an address; "": a free port. With a config it takes TLS only.
func startControl(t *testing.T, addr string, by *tls.Config) *control {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var o []grpc.ServerOption
	if by != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(by)))
	}
	c := &control{addr: ln.Addr().String(), server: grpc.NewServer(o...), streams: make(chan *stream)}
	discovery.RegisterAggregatedDiscoveryServiceServer(c.server, c)
	go c.server.Serve(listener{ln, c})
	t.Cleanup(c.server.Stop)
	return c
}

// next is the next stream.
func (c *control) next(t *testing.T) *stream {
	s := <-c.streams
	s.t = t
	return s
}

// wants reads what the client asks, and compares it: its version, the nonce, and how its refusal begins.
func (s *stream) wants(version, nonce, refusal string) *core.Node {
	s.t.Helper()
	q, err := s.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s", q.VersionInfo, q.ResponseNonce, q.ErrorDetail.GetMessage())
	if !strings.HasPrefix(got, fmt.Sprintf("%s %s %s", version, nonce, refusal)) || (refusal == "") != (q.ErrorDetail == nil) ||
		q.ErrorDetail.GetCode() != 0 || q.TypeUrl != configURL {
		s.t.Errorf("the client says %v, want version %s, nonce %s and the refusal %s", q, version, nonce, refusal)
	}
	return q.Node
}

// tells sends a world: domain=limit, of clients a year.
func (s *stream) tells(version string, domains ...string) {
	r := &discovery.DiscoveryResponse{VersionInfo: version, Nonce: "n" + version, TypeUrl: configURL}
	for _, of := range domains {
		domain, limit, _ := strings.Cut(of, "=")
		r.Resources = append(r.Resources, &anypb.Any{TypeUrl: configURL, Value: domainOf(domain, limit)})
	}
	if err := s.Send(r); err != nil {
		s.t.Error(err)
	}
}

// takes tells a new stream its first world, which the client takes.
func (s *stream) takes(version string, domains ...string) {
	s.wants("", "", "")
	s.tells(version, domains...)
	s.wants(version, "n"+version, "")
}

// domainOf is a RateLimitConfig with a limit for each client.
func domainOf(domain, limit string) []byte {
	var n uint64
	fmt.Sscan(limit, &n)
	field := func(b []byte, number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
	}
	policy := protowire.AppendVarint([]byte("\x08\x06\x10"), n) // a year
	return field(field(field(nil, 1, []byte("the "+domain)), 2, []byte(domain)), 3, field(field(nil, 1, []byte("client")), 3, policy))
}

// ratelimitProgram is celld under the name of envoyproxy/ratelimit's program.
func ratelimitProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(harness.Binary(t), program); err != nil {
		t.Fatal(err)
	}
	return program
}

// TestXDS: celld, as Envoy Gateway runs it, takes its limits from a server by TLS. It refuses what is wrong, goes on while the server is
// away, and knows its limits after a restart.
func TestXDS(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("gateway", &x509.Certificate{DNSNames: []string{"envoy-gateway"}})
	mine, myKey := ca.Sign("celld", &x509.Certificate{DNSNames: []string{"envoy-ratelimit"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trusts := ca.Client("", "").RootCAs
	by := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusts}
	c := startControl(t, "", by)
	dir := t.TempDir()
	env := append(strings.Fields("RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit CONFIG_TYPE=GRPC_XDS_SOTW "+
		"FORCE_START_WITHOUT_INITIAL_CONFIG=true CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit CONFIG_GRPC_XDS_NODE_METADATA=zone=a CONFIG_GRPC_XDS_SERVER_USE_TLS=true "+
		"CONFIG_GRPC_XDS_SERVER_TLS_SAN=envoy-gateway GRPC_SERVER_USE_TLS=true HOST=127.0.0.1 GRPC_HOST=127.0.0.1"),
		"CONFIG_GRPC_XDS_SERVER_URL="+c.addr, "CONFIG_GRPC_XDS_CLIENT_TLS_CERT="+mine, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY="+myKey,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT="+ca.File, "GRPC_SERVER_TLS_CERT="+mine, "GRPC_SERVER_TLS_KEY="+myKey,
		"GRPC_SERVER_TLS_CA_CERT="+ca.File, "PORT="+harness.FreePort(t), "GRPC_PORT="+harness.FreePort(t))
	spec := harness.Spec{Binary: ratelimitProgram(t), Env: env, Flags: []string{"--dir", dir, "--quotaRateLimitServiceAddr=x"}}
	srv := startOn(t, spec)
	srv.Logs("quotaRateLimitServiceAddr", "celld does not know it, and leaves it out")
	client := dial(t, srv.grpc, ca.Client("", ""))
	if got := told(ask(client, request("shop", "client=ann"))); !strings.Contains(got, "no rate limit configuration loaded") {
		t.Errorf("before the first configuration: %s", got)
	}
	if code, _, body := harness.Get(srv.Server, srv.http+"/healthcheck"); code != 200 {
		t.Errorf("before the first configuration the health is %d %s", code, body)
	}
	s := c.next(t)
	if node := s.wants("", "", ""); node.Id != "envoy-ratelimit" || node.Metadata.Fields["zone"].GetStringValue() != "a" {
		t.Errorf("the node is %v", node)
	}
	s.tells("1", "shop=2", "bar=3")
	s.wants("1", "n1", "")
	expect(t, client, "client=ann", firstOf2)
	s.tells("2", "shop=9", "shop=9")
	s.wants("1", "n2", "the shop: the domain 'shop' stands twice")
	expect(t, client, "client=ann", secondOf2)
	s.tells("3", "shop=2")
	s.wants("3", "n3", "")
	if got := limitOf(client, "bar"); got != "none" {
		t.Errorf("a domain that has gone has the limit %s", got)
	}
	c.server.Stop()
	expect(t, client, "client=ann", overOf2)
	srv.Stop()

	next := startOn(t, spec) // while nobody serves
	next.Logs("the kept configuration is in force until the xDS server tells another")
	expect(t, dial(t, next.grpc, ca.Client("", "")), "client=ann", firstOf2) // its counts were in memory
	other := startControl(t, c.addr, by)
	s = other.next(t)
	s.wants("", "", "")
	s.tells("3", "shop=5") // another server may count anew
	s.wants("3", "n3", "")
	if got := limitOf(dial(t, next.grpc, ca.Client("", "")), "shop"); got != "5" {
		t.Errorf("the limit is %s", got)
	}
	close(s.ends)
	if s = other.next(t); s != nil { // it asks again after a second
		s.wants("", "", "")
	}
}
