//go:build all

package clients

import (
	"os"
	"path/filepath"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// towerPath is where `make tower` builds testdata/tower, which takes minutes.
const towerPath = "../../.cache/tower/debug/limit-tower"

// TestTowerRedisCell runs the crate tower-redis-cell with celld. Only `make test-all` does, as that builds it.
func TestTowerRedisCell(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs(towerPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		celldtest.Missing(t, "not built (make tower does it): %v", err)
	}
	srv := harness.Start(t, "--requirepass", "sesame")
	if got, want := harness.Tool(t, path, "redis://:sesame@"+srv.Addr+"/"), "hello 42\nhello 42\nlimited, 3600 s\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
