package envoy

import (
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// health is a celld whose health is asked.
type health struct {
	*served
	grpc_health_v1.HealthClient
}

func startHealth(t *testing.T, config string, flags ...string) *health {
	t.Helper()
	s := start(t, config, append([]string{"--envoy-http-bind", "127.0.0.1:0", "--envoy-metrics-bind", "127.0.0.1:0"}, flags...)...)
	return &health{s, grpc_health_v1.NewHealthClient(connect(t, s.grpc))}
}

// is asks for the health in all ways: by gRPC for celld as a whole and for the service, and by HTTP. Where it is well why is "", else a
// part of the reason.
func (h *health) is(why string) bool {
	h.T.Helper()
	want, wantCode := grpc_health_v1.HealthCheckResponse_SERVING, 200
	if why != "" {
		want, wantCode = grpc_health_v1.HealthCheckResponse_NOT_SERVING, 500
	}
	for _, service := range []string{"", "ratelimit"} {
		r, err := h.Check(h.T.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			h.T.Fatal(err)
		}
		if r.Status != want {
			return false
		}
	}
	code, _, body := harness.Get(h.Server, h.http+"/healthcheck")
	return code == wantCode && (why == "" && body == "OK" || why != "" && strings.Contains(body, why))
}

// TestHealth: celld is well while a configuration is in force and it does not stop. Who watches is told.
func TestHealth(t *testing.T) {
	t.Parallel()
	h := startHealth(t, shop, "--shutdown-delay", "3600", "--shutdown-timeout", "3600")
	if !h.is("") {
		t.Error("it is not well")
	}
	if _, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "nosuch"}); status.Code(err) != codes.NotFound {
		t.Errorf("another service: %v", err)
	}
	_, _, page := harness.Get(h.Server, h.metrics)
	if got := metric(page, `ratelimit_service_total_requests{grpc_method="Check"}`); got != "3" {
		t.Errorf("%s checks", got)
	}
	watch, err := h.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	sees := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if r, err := watch.Recv(); err != nil || r.Status != want {
			t.Errorf("a watcher sees %v, %v; want %v", r, err, want)
		}
	}
	sees(grpc_health_v1.HealthCheckResponse_SERVING)
	h.Cmd.Process.Signal(syscall.SIGTERM)
	sees(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	if !h.is("stop") {
		_, _, body := harness.Get(h.Server, h.http+"/healthcheck")
		t.Errorf("while it stops: %q", body)
	}
	expect(t, dial(t, h.grpc), "client=ann", firstOf2) // it serves until then
	if got := harness.Dial(t, h.Addr).Do("SHUTDOWN", "ABORT"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	sees(grpc_health_v1.HealthCheckResponse_SERVING)
	if !h.is("") {
		t.Error("it is not well after the stop was taken back")
	}
	h.Cmd.Process.Signal(syscall.SIGTERM)
	sees(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	h.Cmd.Process.Signal(syscall.SIGTERM)
	h.Wait(0) // a watcher does not hold it up
}

// TestHealthWithoutConfiguration: until one was good celld is not well, and calls get an error. One that is bad later changes nothing.
func TestHealthWithoutConfiguration(t *testing.T) {
	t.Parallel()
	h := startHealth(t, "domain: shop\ndescriptors: [{key: client, rate_limit: {unit: fortnight}}]\n")
	c := dial(t, h.grpc)
	if !h.is("no configuration is loaded") {
		t.Error("it is well")
	}
	if _, err := ask(c, request("shop", "client=ann")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("got %v", err)
	}
	if code, body := post(t, h.http, `{"domain": "shop", "descriptors": [{"entries": [{"key": "client"}]}]}`); code != 503 ||
		!strings.Contains(body, "no rate limit configuration loaded") {
		t.Errorf("by HTTP: %d %q", code, body)
	}
	if got := harness.Dial(t, h.Addr).Do("PING"); got != "+PONG\r\n" { // what is no part of Envoy's goes on
		t.Error(got)
	}
	celldtest.WriteFile(t, shop, h.config)
	celldtest.Eventually(t, "it is well", func() bool { return h.is("") })
	expect(t, c, "client=ann", firstOf2)
	celldtest.WriteFile(t, "domain: [", h.config)
	h.Logs(`"setting":"envoy-config","file":"` + h.config + `","error":"` + h.config + ": yaml: ")
	if !h.is("") {
		t.Error("it is not well, though the limits before are in force")
	}
	expect(t, c, "client=ann", secondOf2)
}

// TestHealthNeedsDomain: a configuration without a domain is a good one, but where it is told to be none.
func TestHealthNeedsDomain(t *testing.T) {
	t.Parallel()
	for flag, why := range map[string]string{"no": "", "yes": "the configuration has no domain"} {
		dir := t.TempDir()
		s := startOn(t, harness.Spec{Flags: []string{"--envoy-config", dir, "--envoy-bind", "127.0.0.1:0",
			"--envoy-http-bind", "127.0.0.1:0",
			"--envoy-health-needs-domain", flag}})
		h := &health{s, grpc_health_v1.NewHealthClient(connect(t, s.grpc))}
		if !h.is(why) {
			t.Errorf("--envoy-health-needs-domain %s: not %q", flag, why)
		}
		celldtest.WriteFile(t, shop, dir, "shop.yaml")
		celldtest.Eventually(t, "it is well", func() bool { return h.is("") && limitOf(dial(t, s.grpc), "shop") == "2" })
	}
}
