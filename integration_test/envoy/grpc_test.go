package envoy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

func TestDecisions(t *testing.T) {
	t.Parallel()
	s := start(t, shop, "--envoy-headers", "X-Limit X-Left X-Reset")
	c := dial(t, s.grpc)
	for _, want := range []string{firstOf2, secondOf2, overOf2, overOf2} {
		expect(t, c, "client=ann", want)
	}
	expect(t, c, "client=bob", firstOf2)
	expect(t, c, "nobody=knows", noLimit)
	expect(t, c, "slide=ann", firstOf2)
	if got := told(ask(c, request("elsewhere", "client=ann"))); got != noLimit {
		t.Errorf("a domain that is not configured: %s", got)
	}
	r, err := ask(c, request("shop", "client=cleo"))
	if err != nil {
		t.Fatal(err)
	}
	var headers []string
	for _, h := range r.ResponseHeadersToAdd {
		headers = append(headers, h.Key+"="+h.Value)
	}
	reset := r.Statuses[0].DurationUntilReset.GetSeconds()
	if got, want := strings.Join(headers, " "), fmt.Sprintf("X-Limit=2 X-Left=1 X-Reset=%d", reset); got != want {
		t.Errorf("headers: got %s, want %s", got, want)
	}
	// The time to the end of the year, as it counts 365 days from 1970.
	if end := 31_536_000 - time.Now().Unix()%31_536_000; reset < end || reset > end+60 {
		t.Errorf("the reset is in %d s, want %d", reset, end)
	}
	both := request("shop", "client=bob")
	both.Descriptors = append(both.Descriptors, request("shop", "client=ann").Descriptors...)
	if got, want := told(ask(c, both)), "OVER_LIMIT / OK of 2 a YEAR, 0 left, ends / OVER_LIMIT of 2 a YEAR, 0 left, ends"; got != want {
		t.Errorf("two descriptors: got %s, want %s", got, want)
	}
	expect(t, c, "client=bob", overOf2) // what was denied has counted
	own := request("shop", "client=dan")
	own.HitsAddend = 3
	own.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5, Unit: envoytype.RateLimitUnit_MONTH}
	if got, want := told(ask(c, own)), "OK / OK of 5 a MONTH, 2 left, ends"; got != want {
		t.Errorf("a limit of its own: got %s, want %s", got, want)
	}
}

// TestAllOrNone: a request that is denied takes nothing, from the table and from an engine.
func TestAllOrNone(t *testing.T) {
	t.Parallel()
	allOrNone(t)
	allOrNone(t, "--store", "unix://"+strings.TrimPrefix(celldtest.StartRedis(t), "unix:"))
}

func allOrNone(t *testing.T, flags ...string) {
	config := shop + "  - {key: never, rate_limit: {unit: year, requests_per_unit: 0}}\n"
	s := start(t, config, append(flags, "--envoy-all-or-none", "yes")...)
	c := dial(t, s.grpc)
	both := func(one, other string) string {
		q := request("shop", one)
		q.Descriptors = append(q.Descriptors, request("shop", other).Descriptors...)
		return told(ask(c, q))
	}
	expect(t, c, "client=ann", firstOf2)
	expect(t, c, "client=ann", secondOf2)
	const denied = "OVER_LIMIT / OVER_LIMIT of 2 a YEAR, 0 left, ends / OK of 2 a YEAR, 2 left, ends"
	for range 3 {
		if got := both("client=ann", "client=bob"); got != denied {
			t.Errorf("got %s, want %s", got, denied)
		}
		if got := both("never=", "client=bob"); !strings.HasPrefix(got, "OVER_LIMIT / OVER_LIMIT") {
			t.Error(got)
		}
	}
	expect(t, c, "client=bob", firstOf2)
	q := request("shop", "client=cleo")
	q.Descriptors = append(q.Descriptors, request("shop", "client=dan").Descriptors...)
	q.Descriptors[0].HitsAddend = wrapperspb.UInt64(2)
	for _, want := range []string{
		"OK / OK of 2 a YEAR, 0 left, ends / OK of 2 a YEAR, 1 left, ends",
		"OVER_LIMIT / OVER_LIMIT of 2 a YEAR, 0 left, ends / OK of 2 a YEAR, 1 left, ends",
	} {
		if got := told(ask(c, q)); got != want {
			t.Errorf("unequal hits: got %s, want %s", got, want)
		}
	}
	expect(t, c, "client=dan", secondOf2)
}

// TestRefusals: each mistake has a code, and the next call is answered.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, shop)
	conn := connect(t, s.grpc)
	c := ratelimit.NewRateLimitServiceClient(conn)
	limited := func(unit envoytype.RateLimitUnit) *ratelimit.RateLimitRequest {
		q := request("shop", "client=ann")
		q.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: unit}
		return q
	}
	many := request("shop", "client=ann")
	for len(many.Descriptors) <= 1000 {
		many.Descriptors = append(many.Descriptors, many.Descriptors[0])
	}
	long := request("shop", "client="+strings.Repeat("x", 64<<10))
	for _, test := range []struct {
		q    any
		code codes.Code
		says string
	}{
		{request("", "client=ann"), codes.InvalidArgument, "rate limit domain must not be empty"},
		{&ratelimit.RateLimitRequest{Domain: "shop"}, codes.InvalidArgument, "rate limit descriptor list must not be empty"},
		{limited(envoytype.RateLimitUnit_UNKNOWN), codes.InvalidArgument, "the unit UNKNOWN of its limit is not known"},
		{limited(99), codes.InvalidArgument, "the unit 99 of its limit is not known"},
		{many, codes.InvalidArgument, "more than 1000 descriptors"},
		{long, codes.ResourceExhausted, "and may have 65536"},
		{"\x0a\x05shop", codes.InvalidArgument, "cut off"},          // a text of 5 bytes has 4
		{"\x0a\x02\xff\xfe", codes.InvalidArgument, "not UTF-8"},    // as a domain
		{"\xff\xff\xff\xff\xff", codes.InvalidArgument, "cut off"},  // no tag
		{"\x12\x03\x0a\x7f\x0a", codes.InvalidArgument, "cut off"},  // in an entry
		{"\x12\xff\xff\xff\xff\x0f", codes.InvalidArgument, "cut "}, // 4 GB that do not come
	} {
		var err error
		if text, raw := test.q.(string); raw {
			err = conn.Invoke(t.Context(), ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, []byte(text), new([]byte),
				grpc.ForceCodec(bytesCodec{}))
		} else {
			_, err = ask(c, test.q.(*ratelimit.RateLimitRequest))
		}
		if got := status.Convert(err); got.Code() != test.code || !strings.Contains(got.Message(), test.says) {
			t.Errorf("%.100v: got %v; want %v, %s", test.q, err, test.code, test.says)
		}
		expect(t, c, "nobody=knows", noLimit)
	}
	if err := conn.Invoke(t.Context(), "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit", request("", ""),
		&ratelimit.RateLimitResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("the old service: %v", err)
	}
	long = request("shop", "client="+strings.Repeat("x", 60<<10))
	if got := told(ask(c, long)); got != firstOf2 {
		t.Errorf("60 KB: %s", got)
	}
}

// bytesCodec sends bytes as they are.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (bytesCodec) Name() string                       { return "proto" }

// TestHostileBytes: what is no gRPC ends its connection, and no other.
func TestHostileBytes(t *testing.T) {
	t.Parallel()
	s := start(t, shop)
	c := dial(t, s.grpc)
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("\x00", 1<<16), http2.ClientPreface + strings.Repeat("\xff", 64),
		http2.ClientPreface + "\x00\x00\x00\x01\x05\x00\x00\x00\x00",
	} {
		conn := harness.Dial(t, s.grpc)
		conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
		if _, err := io.WriteString(conn, text); err == nil {
			if _, err = io.Copy(io.Discard, conn); isTimeout(err) {
				t.Errorf("%.30q: the connection stays open", text)
			}
		}
		expect(t, c, "nobody=knows", noLimit)
	}
}

func isTimeout(err error) bool {
	timeout, is := err.(net.Error)
	return is && timeout.Timeout()
}

// TestManyCalls: of many calls at once, on one connection, exactly the limit passes.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"threads": {"--io-threads", "4"}, "log": {"--appendonly", "yes"}, "together": {"--envoy-all-or-none", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, shop, flags...)
			c := dial(t, s.grpc)
			var passed, over atomic.Int64
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					for range 200 {
						switch r, err := ask(c, request("shop", "many=")); {
						case err != nil:
							t.Error(err)
							return
						case r.OverallCode == ratelimit.RateLimitResponse_OK:
							passed.Add(1)
						default:
							over.Add(1)
						}
					}
				})
			}
			all.Wait()
			if passed.Load() != 5000 || over.Load() != 5000 {
				t.Errorf("%d passed, %d were over; want 5000 of each", passed.Load(), over.Load())
			}
			info := harness.InfoSections(harness.Dial(t, s.Addr).Do("INFO", "stats"))["Stats"]
			if info["envoy_allowed"] != "5000" || info["envoy_limited"] != "5000" {
				t.Errorf("INFO: %s allowed, %s limited", info["envoy_allowed"], info["envoy_limited"])
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := harness.SocketDir(t) + "/envoy"
	s := start(t, shop, "--envoy-bind", "unix://"+path)
	if s.grpc != path {
		t.Errorf("the log has %s", s.grpc)
	}
	expect(t, dial(t, "unix:"+path), "client=ann", firstOf2)
	s.Stop()
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		t.Error("the socket is open still")
	}
	if s = start(t, shop, "--envoy-bind", "unix://"+path); s.grpc != path { // whatever the last has left
		t.Errorf("the log has %s", s.grpc)
	}
	expect(t, dial(t, "unix:"+path), "client=ann", firstOf2)
}

// TestAllAddresses: [::] serves IPv4, too, as Envoy's world takes for granted.
func TestAllAddresses(t *testing.T) {
	t.Parallel()
	harness.NeedIPv6(t)
	for _, test := range []struct {
		bind      string
		four, six bool
	}{{"[::]", true, true}, {"*", true, false}, {"0.0.0.0", true, false}, {"127.0.0.1", true, false}, {"[::1]", false, true}} {
		port := harness.FreePort(t)
		s := start(t, shop, "--envoy-bind", test.bind+":"+port)
		for host, want := range map[string]bool{"127.0.0.1": test.four, "::1": test.six} {
			addr := net.JoinHostPort(host, port)
			conn, err := net.Dial("tcp", addr)
			if (err == nil) != want {
				t.Errorf("%s on %s: %v", test.bind, host, err)
			}
			if err == nil {
				conn.Close()
				expect(t, dial(t, addr), "nobody=knows", noLimit)
			}
		}
		s.Alive()
	}
}

// TestMaxConnections: one connection more waits until another goes.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	s := start(t, shop, "--envoy-max-connections", "2")
	first, second := connect(t, s.grpc), connect(t, s.grpc)
	for _, conn := range []*grpc.ClientConn{first, second} {
		expect(t, ratelimit.NewRateLimitServiceClient(conn), "nobody=knows", noLimit)
	}
	third := dial(t, s.grpc)
	answered := make(chan string, 1)
	go func() { answered <- told(ask(third, request("shop", "client=ann"))) }()
	for range 100 {
		expect(t, ratelimit.NewRateLimitServiceClient(first), "nobody=knows", noLimit)
	}
	select {
	case got := <-answered:
		t.Fatalf("a third connection is served: %s", got)
	default:
	}
	second.Close()
	if got := <-answered; got != firstOf2 {
		t.Errorf("got %s", got)
	}
}

// TestMaxAge: an old connection is told to go, with a GOAWAY, and no call fails.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	s := start(t, shop, "--envoy-max-connection-age", "1s", "--envoy-max-connection-age-grace", "10s")
	raw := harness.Dial(t, s.grpc)
	raw.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	raw.Send([]byte(http2.ClientPreface))
	frames := http2.NewFramer(raw, raw)
	if err := frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, s.grpc)
	c, addresses := ratelimit.NewRateLimitServiceClient(conn), map[string]bool{}
	celldtest.Eventually(t, "three connections, one after the other", func() bool {
		var at peer.Peer
		r, err := c.ShouldRateLimit(t.Context(), request("shop", "nobody=knows"), grpc.Peer(&at))
		if err != nil {
			t.Fatalf("a call fails: %v", err)
		}
		if got := told(r, err); got != noLimit {
			t.Fatal(got)
		}
		addresses[at.LocalAddr.String()] = true
		return len(addresses) == 3
	})
	goneAway := false
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			if isTimeout(err) || !goneAway {
				t.Errorf("the connection ends with %v, GOAWAY: %v", err, goneAway)
			}
			return
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			goneAway = goneAway || frame.ErrCode == http2.ErrCodeNo
		case *http2.PingFrame:
			if !frame.IsAck() {
				_ = frames.WritePing(true, frame.Data)
			}
		}
	}
}

// TestStopAnswers: a call that runs when celld is told to stop is answered, and no other begins.
func TestStopAnswers(t *testing.T) {
	t.Parallel()
	engine := celldtest.StartRedis(t)
	s := start(t, shop, "--store", strings.Replace(engine, "unix:", "unix://", 1), "--envoy-http-bind", "127.0.0.1:0",
		"--shutdown-timeout", "60")
	conn := connect(t, s.grpc)
	c := ratelimit.NewRateLimitServiceClient(conn)
	expect(t, c, "client=ann", firstOf2)
	redis := harness.Dial(t, engine)
	if got := redis.Do("CLIENT", "PAUSE", "60000", "WRITE"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), celldtest.Patience)
	defer cancel()
	calls := make([]grpc.ClientStream, 10)
	for i := range calls {
		call, err := conn.NewStream(ctx, &grpc.StreamDesc{}, ratelimit.RateLimitService_ShouldRateLimit_FullMethodName)
		if err == nil {
			err = call.SendMsg(request("shop", "client=ann"))
		}
		if err == nil {
			err = call.CloseSend()
		}
		if err != nil {
			t.Fatal(err)
		}
		calls[i] = call
	}
	celldtest.Eventually(t, "the calls run", func() bool {
		return !strings.Contains(redis.Do("INFO", "clients"), "\r\nblocked_clients:0\r\n")
	})
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	celldtest.Eventually(t, "it says that it goes", func() bool { return conn.GetState() != connectivity.Ready })
	celldtest.Eventually(t, "nobody else is let in", func() bool {
		other, err := net.Dial("tcp", s.grpc)
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	if got := redis.Do("CLIENT", "UNPAUSE"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	got := map[string]int{}
	for _, call := range calls {
		var r ratelimit.RateLimitResponse
		got[told(&r, call.RecvMsg(&r))]++
	}
	if got[secondOf2] != 1 || got[overOf2] != len(calls)-1 {
		t.Errorf("%v", got)
	}
	s.Wait(0)
}

// TestCrash: what was answered is on the disk.
func TestCrash(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), t.TempDir()+"/limits.yaml"
	celldtest.WriteFile(t, shop, file)
	flags := []string{"--envoy-config", file, "--envoy-bind", "127.0.0.1:0", "--dir", dir, "--appendonly", "yes", "--appendfsync", "always"}
	for _, want := range []string{firstOf2, secondOf2, overOf2} {
		s := startOn(t, harness.Spec{Dies: true, Flags: flags})
		c := dial(t, s.grpc)
		expect(t, c, "client=ann", want)
		expect(t, c, "slide=ann", want)
		s.Cmd.Process.Kill()
		<-s.Exited
	}
}

// TestEngineAway: without its engine celld says that it is unavailable.
func TestEngineAway(t *testing.T) {
	t.Parallel()
	engine := celldtest.NewAiling(t)
	engine.Answers("-LOADING Redis is loading the dataset in memory\r\n")
	s := start(t, shop, "--store", "unix://"+engine.Socket, "--envoy-metrics-bind", "127.0.0.1:0")
	if _, err := dial(t, s.grpc).ShouldRateLimit(t.Context(), request("shop", "client=ann")); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	_, _, page := harness.Get(s.Server, s.metrics)
	if got := metric(page, `ratelimit_service_should_rate_limit_error{err_type="redis_error"}`); got != "1" {
		t.Errorf("%s errors", got)
	}
}
