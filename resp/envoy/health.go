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
	unwell  func() error // what is known
	ready   func() error // what a decision shows
	stopped <-chan struct{}
}

func newHealth(unwell, ready func() error, stopped <-chan struct{}) *healthServer {
	return &healthServer{health.NewServer(), unwell, ready, stopped}
}

// now returns why no calls should come here, or nil.
func (h *healthServer) now() error {
	if err := h.unwell(); err != nil {
		return err
	}
	return h.ready()
}

// tell tells those who watch.
func (h *healthServer) tell(err error) {
	serving := grpc_health_v1.HealthCheckResponse_SERVING
	if err != nil {
		serving = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus("", serving)
	h.SetServingStatus(healthName, serving)
}

// Check tells what is so now.
func (h *healthServer) Check(ctx context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.tell(h.now())
	return h.Server.Check(ctx, in)
}

// Watch tells of each change. It ends when the server stops, which would wait for all who watch.
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
	return h.Server.Watch(in, watcherUntil{to, ctx})
}

// watcherUntil is a watcher until a context ends.
type watcherUntil struct {
	grpc_health_v1.Health_WatchServer
	ctx context.Context
}

func (w watcherUntil) Context() context.Context { return w.ctx }
