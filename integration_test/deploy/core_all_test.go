//go:build all

package deploy

import (
	"os"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// The core does its work without any wing: the tests of limits and of files pass, except those that run scripts.
func TestTheCoreAlone(t *testing.T) {
	main := celldtest.ReadFile(t, "../../main.go")
	bare := buildMain(t, strings.Replace(main, wingList.FindStringSubmatch(main)[1]+"\n", "", 1))
	t.Logf("%.1f MB without wings", sizeOf(t, bare))
	tests := harness.Command(t, "go", "test", "-count=1", "-skip=Script", "./take", "./persistence")
	tests.Dir = ".."
	tests.Env = append(os.Environ(), "CELLD_BINARY="+bare)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
