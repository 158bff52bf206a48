package envoy

import (
	"context"

	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// healthName is the service whose health is told, as envoyproxy/ratelimit names it. The empty name has the same health.
const healthName = "ratelimit"

// healthServer tells gRPC's health protocol whether calls should come here.
type healthServer struct {
	*health.Server
	unwell  func() error
	stopped chan struct{}
}

// newHealth makes one that ends what it tells those who watch when stopped is closed.
func newHealth(unwell func() error, stopped chan struct{}) *healthServer {
	return &healthServer{health.NewServer(), unwell, stopped}
}

// update tells those who watch.
func (h *healthServer) update() {
	serving := grpc_health_v1.HealthCheckResponse_SERVING
	if h.unwell() != nil {
		serving = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus("", serving)
	h.SetServingStatus(healthName, serving)
}

// Check tells what is so now.
func (h *healthServer) Check(ctx context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.update()
	return h.Server.Check(ctx, in)
}

// Watch tells what is so now, and each change, until the service stops: else a client who watches would hold up its end.
func (h *healthServer) Watch(in *grpc_health_v1.HealthCheckRequest, to grpc_health_v1.Health_WatchServer) error {
	ctx, cancel := context.WithCancel(to.Context())
	defer cancel()
	go func() {
		select {
		case <-h.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	return h.Server.Watch(in, watcherOfHealth{to, ctx})
}

// watcherOfHealth is a client who watches until a context ends.
type watcherOfHealth struct {
	grpc_health_v1.Health_WatchServer
	ctx context.Context
}

func (w watcherOfHealth) Context() context.Context { return w.ctx }
