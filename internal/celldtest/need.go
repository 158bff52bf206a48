package celldtest

import (
	"os"
	"os/exec"
	"testing"
)

// Need returns the path of a tool. Without the tool the test is skipped, and fails in CI.
func Need(t testing.TB, tool string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil { // where Debian has servers, and who is not root does not look
		path, err = exec.LookPath("/usr/sbin/" + tool)
	}
	if err != nil {
		Missing(t, "%s is not installed", tool)
	}
	return path
}

// Missing skips the test for what is not on this machine, and fails it in CI.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
