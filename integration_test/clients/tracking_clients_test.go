package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"celld/integration_test/harness"
)

// TestScriptClientCaches runs node-redis and redis-py with their caches. They ask for CLIENT TRACKING ON, and look at what is
// announced before they read from the cache.
func TestScriptClientCaches(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(clientsDir)
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "python/bin/python")
	for name, run := range map[string]struct{ installed, program, script string }{
		"redis-py":   {python, python, "redis_py_cache.py"},
		"node-redis": {filepath.Join(dir, "node_modules/redis"), "node", "node_redis_cache.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(run.installed); err != nil {
				harness.Missing(t, "not installed (make clients does it): %v", err)
			}
			cmd := exec.Command(harness.Need(t, run.program), run.script, "redis://"+harness.Start(t).Addr+"/0")
			cmd.Dir = "testdata"
			cmd.Env = append(harness.CleanEnv(), "NODE_PATH="+filepath.Join(dir, "node_modules"), "PYTHONDONTWRITEBYTECODE=1")
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			type facts struct {
				Stale    int // reads that did not see a change, of 100
				Tracking int // connections
				Take     []int64
				Cached   int // replies, at the end
			}
			var got facts
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if want := (facts{0, 1, []int64{0, 5, 4, -1, 720_000, 1, 0}, 0}); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
