//go:build all

package web

import (
	"os"
	"os/exec"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// downloaded is a program that `make proxies` puts there.
func downloaded(t *testing.T, name string) string {
	t.Helper()
	path := harness.CachePath(t, "proxies/bin/"+name)
	if _, err := os.Stat(path); err != nil {
		celldtest.Missing(t, "not installed (make proxies does it): %v", err)
	}
	return path
}

// envoy is the command that runs it by a file.
func envoy(t *testing.T, file string) func(dir string) *exec.Cmd {
	path := downloaded(t, "python") // envoy's own script names the folder that it was installed in
	return func(string) *exec.Cmd {
		return exec.Command(path, "-m", "envoy._main", "-c", file, "-l", "warning", "--use-dynamic-base-id", "--concurrency", "1")
	}
}

func TestEnvoy(t *testing.T) {
	t.Parallel()
	proxied(t, "envoy", envoy(t, "envoy.yaml"))
}

func TestFailedLoginsByEnvoy(t *testing.T) {
	t.Parallel()
	failedLogins(t, "envoy/failed-logins.yaml", envoy(t, "failed-logins.yaml"))
}

func TestCaddy(t *testing.T) {
	t.Parallel()
	path := downloaded(t, "caddy")
	proxied(t, "caddy", func(string) *exec.Cmd { return exec.Command(path, "run", "--config", "Caddyfile") })
}

func TestTraefik(t *testing.T) {
	t.Parallel()
	path := downloaded(t, "traefik")
	proxied(t, "traefik", func(string) *exec.Cmd { return exec.Command(path, "--configFile=traefik.yaml") })
}
