package redis

import (
	"testing"

	"celld/internal/celldtest"
)

// TestRedis compares the commands that Redis has too.
func TestRedis(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-server")
	compareFolder(t, "../../resp/testdata/redis", redisDifferences, func(file string) (celld, redis []string) {
		if file == "auth" {
			celld = []string{"--requirepass", "sesame"}
		}
		return celld, celld
	})
}
