package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// Command is exec.Command for a program that a test waits for. It ends with the test, and after programTime: one that hangs would keep the
// test's name and what the program has printed from everybody.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programTime)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 10 * time.Second // its children may hold its outputs
	return cmd
}

// programTime is far above what a program takes on a loaded machine that downloads and compiles it first.
const programTime = 20 * time.Minute

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
	cmd := Command(t, celldtest.Need(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = CleanEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Script runs a script of testdata, in that folder and with more of an environment: args are the program's. It returns what the script
// prints. One that fails, or that complains, fails the test.
func Script(t testing.TB, env []string, program string, args ...string) (output []byte) {
	t.Helper()
	files, _ := filepath.Glob("testdata/*")
	for _, path := range files {
		if _, err := os.Stat(path); err != nil { // so that go test's cache knows of it, and of those that it loads
			t.Fatal(err)
		}
	}
	cmd := Command(t, program, args...)
	cmd.Dir = "testdata"
	cmd.Env = slices.Concat(CleanEnv(), []string{"PYTHONDONTWRITEBYTECODE=1"}, env)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s %q: %v\n%s%s", program, args, err, output, stderr.String())
	}
	return output
}
