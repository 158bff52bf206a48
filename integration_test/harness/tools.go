package harness

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
)

// NeedRoot skips the test, or fails it in CI, where this process may not chroot or make namespaces.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		celldtest.Missing(t, "not root")
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, celldtest.Need(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = CleanEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
