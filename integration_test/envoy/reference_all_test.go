//go:build all

package envoy

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// newest is an envoyproxy/ratelimit that is newer than the one that make ratelimit builds, the last to be a Go module. The tests then try
// all that it can.
var newest = os.Getenv("RATELIMIT")

// reference is an envoyproxy/ratelimit with a redis-server of its own.
type reference struct {
	grpc, http, prometheus string
	client                 ratelimit.RateLimitServiceClient
}

// startReference starts it on the files of a directory.
func startReference(t *testing.T, dir string, env ...string) *reference {
	t.Helper()
	binary := newest
	if binary == "" {
		binary = harness.CachePath(t, "ratelimit/service_cmd")
		if _, err := os.Stat(binary); err != nil {
			celldtest.Missing(t, "no envoyproxy/ratelimit (make ratelimit builds it): %v", err)
		}
	}
	root := filepath.Dir(dir)
	local := func() string { return harness.FreePort(t) }
	grpcPort, httpPort, debugPort, prometheus := local(), local(), local(), local()
	cmd := exec.Command(binary)
	cmd.Env = append(harness.CleanEnv(), "USE_STATSD=false", "LOG_LEVEL=error", "REDIS_SOCKET_TYPE=unix",
		"REDIS_URL="+strings.TrimPrefix(celldtest.StartRedis(t), "unix:"),
		"RUNTIME_ROOT="+root, "RUNTIME_WATCH_ROOT=false", "RUNTIME_APPDIRECTORY="+filepath.Base(dir), "HOST=127.0.0.1",
		"GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "PORT="+httpPort, "GRPC_PORT="+grpcPort, "DEBUG_PORT="+debugPort,
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:"+prometheus, "STATS_FLUSH_INTERVAL=1s")
	cmd.Env = append(cmd.Env, env...)
	log := &celldtest.LogBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	r := &reference{grpc: net.JoinHostPort("127.0.0.1", grpcPort), http: "http://127.0.0.1:" + httpPort,
		prometheus: "http://127.0.0.1:" + prometheus}
	celldtest.Eventually(t, "envoyproxy/ratelimit starts", func() bool {
		answer, err := http.Get(r.http + "/healthcheck")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
	r.client = dial(t, r.grpc)
	return r
}
