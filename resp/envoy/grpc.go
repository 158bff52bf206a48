package envoy

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // of the health service
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"celld/resp/envoy/message"
)

// The bounds of a connection. It holds mostCalls messages of mostMessage at most: 16 MB.
const (
	mostCalls     = 256
	mostMessage   = 64 << 10
	handshakeTime = 5 * time.Second

	// A peer that does not answer for so long has gone. It may ask whether we are there as often as every 5 s; gRPC's own bound of 5
	// minutes would close the connections of Envoys with a shorter keep-alive.
	silence  = time.Minute
	pingTime = 20 * time.Second
	minPing  = 5 * time.Second
)

// workers are goroutines that answer calls. They spare each call one of its own, whose stack would have to grow: 9 % of the CPU of calls
// that come one by one. With 4 for 2 cores, 50 calls at once took 9 % more than with 64. All take 0.2 MB.
const workers = 64

// newGRPC makes the server of gRPC.
func newGRPC(s *service, health grpc_health_v1.HealthServer) *grpc.Server {
	o := &s.options
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}),
		grpc.MaxRecvMsgSize(mostMessage),
		grpc.MaxConcurrentStreams(mostCalls),
		grpc.StaticStreamWindowSize(mostMessage), // a window that follows the bandwidth grows to 16 MB, and sends pings to measure it
		grpc.StaticConnWindowSize(mostMessage),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.NumStreamWorkers(workers),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: ageOf(o.MaxAge), MaxConnectionAgeGrace: ageOf(o.MaxAgeGrace), Time: silence, Timeout: pingTime,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.measure),
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(certificates{credentials.NewTLS(&tls.Config{}), o.TLS, o.ClientSAN}))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.ratelimit.v3.RateLimitService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: shouldRateLimitHandler}},
	}, s)
	grpc_health_v1.RegisterHealthServer(server, health)
	return server
}

// ageOf is a duration as gRPC has it. 0 means for ever, here as there.
func ageOf(d time.Duration) time.Duration {
	if d == 0 {
		return math.MaxInt64
	}
	return d
}

// shouldRateLimitHandler is what generated code would do, but it survives a panic, which would end the process.
func shouldRateLimitHandler(of any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (out any, err error) {
	s := of.(*service)
	defer func() {
		if cause := recover(); cause != nil {
			s.panicked(cause, "call of Envoy")
			out, err = nil, status.Error(codes.Internal, "internal error")
		}
	}()
	var in incoming
	if err := decode(&in); err != nil {
		return nil, err
	}
	answer := func(context.Context, any) (any, error) {
		if in.wrong != nil {
			return nil, s.refuse(in.wrong.Error())
		}
		return s.ask(in.Request)
	}
	return through(ctx, &in, &grpc.UnaryServerInfo{Server: s, FullMethod: shouldRateLimitMethod}, answer)
}

const shouldRateLimitMethod = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

// measure measures a call.
func (s *service) measure(ctx context.Context, in any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (out any, err error) {
	method := &s.stats.methods[check]
	if info.FullMethod == shouldRateLimitMethod {
		method = &s.stats.methods[shouldRateLimit]
	}
	began := time.Now()
	defer method.done(began)
	return answer(ctx, in)
}

// incoming is a request that the codec reads. wrong is why it cannot: of an error, gRPC would make INTERNAL before anybody sees it.
type incoming struct {
	*message.Request
	wrong error
}

// codec reads and writes the messages of the rate limit service by hand, and all others, those of the health service, as protobuf does.
type codec struct{ encoding.CodecV2 }

func (c codec) Unmarshal(data mem.BufferSlice, into any) error {
	in, own := into.(*incoming)
	if !own {
		return c.CodecV2.Unmarshal(data, into)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	in.Request, in.wrong = message.Unmarshal(whole.ReadOnlyData())
	return nil
}

func (c codec) Marshal(from any) (mem.BufferSlice, error) {
	out, own := from.(*message.Response)
	if !own {
		return c.CodecV2.Marshal(from)
	}
	data, err := out.Marshal(make([]byte, 0, 128))
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

// certificates shake hands with the certificates of the moment.
type certificates struct {
	credentials.TransportCredentials
	config func() *tls.Config
	san    string // that a client's certificate must have; "": any
}

func (c certificates) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config := c.config().Clone()
	if c.san != "" {
		config.VerifyConnection = func(state tls.ConnectionState) error { return state.PeerCertificates[0].VerifyHostname(c.san) }
	}
	return credentials.NewTLS(config).ServerHandshake(raw)
}

func (c certificates) Clone() credentials.TransportCredentials { return c }
