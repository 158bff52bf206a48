//go:build all

package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestTutorial types the tutorial in, and sees what it shows.
func TestTutorial(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"redis-cli", "curl", "prometheus"} {
		celldtest.Need(t, tool)
	}
	python, err := filepath.Abs("../../.cache/clients/python/bin/python")
	if _, wrong := os.Stat(python); err != nil || wrong != nil {
		celldtest.Missing(t, "no Python with redis-py: make clients")
	}
	port, web, service, prometheus := harness.FreePort(t), harness.FreePort(t), harness.FreePort(t), harness.FreePort(t)
	shims := map[string]string{
		"celld":     "export CELLD_PORT=" + port + "\nexec " + harness.Binary(t) + ` "$@"`,
		"redis-cli": "exec " + celldtest.Need(t, "redis-cli") + " --no-raw -p " + port + ` "$@"`,
		"python3":   "exec " + python + ` "$@"`,
	}
	page := celldtest.ReadFile(t, "../../docs/tutorial.md")
	blocks := shell(t, page, shims, "port=6379", "port="+port, "127.0.0.1:8080", "127.0.0.1:"+web, "localhost:8000", "localhost:"+service,
		`"127.0.0.1", 8000`, `"127.0.0.1", `+service, "127.0.0.1:9090", "127.0.0.1:"+prometheus, "localhost:9090", "localhost:"+prometheus)
	told := 0
	for _, b := range blocks {
		if b.says != "" {
			told++
		}
		if !strings.Contains("\n"+b.printed, "\n"+b.says) {
			t.Errorf("%s\nprints\n%s\nand the page says\n%s", b.typed, b.printed, b.says)
		}
	}
	if told < 5 {
		t.Errorf("the page tells of %d blocks what they print", told)
	}
}
