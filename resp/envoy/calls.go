package envoy

import (
	"crypto/tls"
	"net"
	"time"

	"celld/resp/envoy/grpc"
	"celld/resp/envoy/message"
)

// newGRPC makes the server of gRPC. waits is whether a decision may wait.
func newGRPC(s *service, h *health, waits bool) *grpc.Server {
	o := grpc.Options{
		Methods: map[string]grpc.Method{
			"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": {Unary: s.shouldRateLimit},
			"/grpc.health.v1.Health/Check":                                 {Unary: h.check},
			"/grpc.health.v1.Health/Watch":                                 {Stream: h.watch},
		},
		Waits: waits, MaxAge: s.options.MaxAge, MaxAgeGrace: s.options.MaxAgeGrace,
		Panicked: func(cause any) { s.panicked(cause, "call of Envoy") },
	}
	if s.options.TLS != nil {
		o.TLS = func(raw net.Conn) *tls.Conn { return tls.Server(raw, s.certificates()) }
	}
	return grpc.NewServer(o)
}

// shouldRateLimit answers a RateLimitRequest.
func (s *service) shouldRateLimit(in, out []byte) ([]byte, error) {
	defer s.stats.methods[shouldRateLimit].done(time.Now())
	q, err := message.Unmarshal(in)
	if err != nil {
		return nil, s.refuse(err.Error())
	}
	answer, err := s.ask(q)
	if err != nil {
		return nil, err
	}
	return answer.Marshal(out)
}

// certificates are those of the moment, by which to shake hands. A client's must have the name that is asked for.
func (s *service) certificates() *tls.Config {
	config := s.options.TLS().Clone()
	config.NextProtos = []string{"h2"}
	if san := s.options.ClientSAN; san != "" {
		config.VerifyConnection = func(state tls.ConnectionState) error { return state.PeerCertificates[0].VerifyHostname(san) }
	}
	return config
}
