//go:build all

package integration_test

import (
	"os"
	"path/filepath"
	"testing"
)

// towerPath is where `make tower` builds testdata/tower, which takes minutes.
const towerPath = "../.cache/tower/debug/limit-tower"

// TestTowerRedisCell runs the crate tower-redis-cell with celld. Only `make test-all` does, as that builds it.
func TestTowerRedisCell(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs(towerPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, "not built (make tower does it): %v", err)
	}
	srv := start(t, "--requirepass", "sesame")
	if got, want := tool(t, path, "redis://:sesame@"+srv.addr+"/"), "hello 42\nhello 42\nlimited, 3600 s\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
