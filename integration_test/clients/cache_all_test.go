//go:build all

package clients

import (
	"reflect"
	"testing"

	"celld/integration_test/harness"
)

// TestScriptClientCaches runs node-redis and redis-py with their caches. They ask for CLIENT TRACKING ON, and look at what is
// announced before they read from the cache.
func TestScriptClientCaches(t *testing.T) {
	t.Parallel()
	type facts struct {
		Stale    int // reads that did not see a change, of 100
		Tracking int // connections
		Take     []int64
		Cached   int // replies, at the end
	}
	for name, run := range map[string]struct{ client, script string }{
		"redis-py":   {"python/bin/python", "redis_py_cache.py"},
		"node-redis": {"node_modules/redis", "node_redis_cache.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got facts
			runScript(t, &got, run.client, run.script, "redis://"+harness.Start(t).Addr+"/0")
			if want := (facts{0, 1, []int64{0, 5, 4, -1, 720_000, 1, 0}, 0}); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
