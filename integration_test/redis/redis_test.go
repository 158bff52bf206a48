package redis

import (
	"testing"

	"celld/integration_test/harness"
)

// TestRedis compares the commands that Redis has too.
func TestRedis(t *testing.T) {
	t.Parallel()
	harness.Need(t, "redis-server")
	compareFolder(t, "../../resp/testdata/redis", redisDifferences, func(file string) (celld, redis []string) {
		switch file {
		case "auth":
			celld = []string{"--requirepass", "sesame"}
		case "debug", "latency":
			celld = []string{"--enable-debug-command", "yes"}
		}
		return celld, celld
	})
}
