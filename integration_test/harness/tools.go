package harness

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
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

// NeedRoot skips the test, or fails it in CI, where this process may not chroot or make namespaces.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		Missing(t, "not root")
	}
}

// Missing skips the test for what is not on this machine, and fails it in CI.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool runs a program to its end and returns what it printed on both outputs. Its own exit code must be 0.
func Tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := TryTool(t, "", name, args...)
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return out
}

// TryTool runs a program with this standard input.
func TryTool(t testing.TB, stdin, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Need(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = CleanEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
