package redis

import (
	"testing"

	"celld/integration_test/harness"
)

// TestScripts compares the scripts by which people reach CL.THROTTLE, with redis-cell in redis-server.
func TestScripts(t *testing.T) {
	t.Parallel()
	module := []string{"--loadmodule", harness.ModulePath(t)}
	compareFolder(t, "../../resp/testdata/scripts", scriptDifferences, func(string) (celld, redis []string) { return nil, module })
}
