package envoy

import (
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"celld/resp/config"
)

// serveGRPC serves a service by gRPC, and returns a connection to it.
func serveGRPC(t *testing.T, s *service, health *healthServer) (*grpc.Server, *grpc.ClientConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newGRPC(s, health)
	go server.Serve(ln)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return server, conn
}

func TestHealth(t *testing.T) {
	w, sick, stopped := newWorld(t, config.EnvoyOptions{}), error(nil), make(chan struct{})
	health := newHealth(func() error { return sick }, stopped)
	server, conn := serveGRPC(t, &w.service, health)
	client := grpc_health_v1.NewHealthClient(conn)
	check := func(name string, want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		answer, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || answer.Status != want {
			t.Errorf("%q is %v, %v, want %v", name, answer, err, want)
		}
	}
	const serving, notServing = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING
	check("", serving)
	check("ratelimit", serving)
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "other"})
	if got := status.Code(err); got != codes.NotFound {
		t.Errorf("the health of an unknown service: %v", err)
	}
	sick = errors.New("sick")
	check("ratelimit", notServing)

	watching, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{notServing, serving} {
		answer, err := watching.Recv()
		if err != nil || answer.Status != want {
			t.Fatalf("a watcher sees %v, %v, want %v", answer, err, want)
		}
		sick = nil
		health.update()
	}

	// A client who watches does not hold up the end.
	health.Shutdown()
	close(stopped)
	ended := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the server does not stop while somebody watches")
	}
}
