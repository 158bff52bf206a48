package harness

import (
	"os"
	"path/filepath"
	"testing"

	"celld/internal/celldtest"
)

// ModulePath is redis-cell's library: REDIS_CELL_MODULE, else the 0.2.2 that `make redis-cell` builds.
func ModulePath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("REDIS_CELL_MODULE")
	if path == "" {
		path = root + "/.cache/redis-cell/libredis_cell.so"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		celldtest.Missing(t, "no redis-cell module (make redis-cell builds it): %v", err)
	}
	return path
}
