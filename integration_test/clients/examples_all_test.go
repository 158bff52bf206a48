//go:build all

package clients

import (
	"os/exec"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestCompiledExamples does the same with examples that download and compile for minutes.
func TestCompiledExamples(t *testing.T) {
	runExamples(t, []example{
		{"java-jedis", true, javaExample},
		{"java-lettuce", true, javaExample},
		{"rust", true, func(t *testing.T, dir string) *exec.Cmd {
			cmd := harness.Command(t, celldtest.Need(t, "cargo"), "run", "--quiet")
			cmd.Env = []string{"CARGO_TARGET_DIR=" + harness.CachePath(t, "examples/target"), "CARGO_PROFILE_DEV_DEBUG=none"}
			return cmd
		}},
	})
}

func javaExample(t *testing.T, dir string) *exec.Cmd {
	return harness.Command(t, celldtest.Need(t, "mvn"), "--quiet", "--batch-mode", "-Dmaven.repo.local="+harness.CachePath(t, "maven"),
		"compile", "exec:java")
}
