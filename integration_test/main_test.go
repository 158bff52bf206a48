// Package integration_test drives the built binary over real sockets, with real clients, and compares it with the real
// peers: redis-cell in a redis-server for CL.THROTTLE, a plain redis-server for everything else, and for CL.TAKE the
// limiters that it stands in for. It knows nothing of celld's internals but for package cell, which peers_exact_test.go asks
// at instants that it sets.
//
//	go test ./integration_test                    whatever the tools on this machine allow; the rest is skipped, by name
//	CI=true go test ./integration_test            a missing tool is a failure
//	go test ./integration_test -args -seed 7      the random calls of an earlier run again (each run logs its seed)
//
// A test starts servers of its own on ports the kernel chooses (start in server_test.go) and sees them end: every server
// must exit with code 0 when it is told to, after whatever the test did to it.
package integration_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random calls; 0: a new one")

// buildFlags are the flags with which the Dockerfile builds the binary; TestDockerfile holds it to them.
var buildFlags = []string{"-trimpath", "-ldflags=-s -w"}

// binary is the static binary, as in the Docker image. stressBinary is the one for tests of many clients at once: with
// go test -race it is built with the race detector, whose findings end a server with a code other than 0.
var binary, stressBinary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "celld-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "celld")
	stressBinary = binary
	if err := build(binary, "CGO_ENABLED=0", buildFlags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if raceEnabled {
		stressBinary = filepath.Join(dir, "celld-race")
		if err := build(stressBinary, "CGO_ENABLED=1", "-race"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func build(path, env string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, ".")...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// TestSourcesAreSeen looks at each source file, so that go test's cache of results knows what the binary and the examples are
// made of. It is a test because go test takes note of files only while tests run.
func TestSourcesAreSeen(t *testing.T) {
	seen := 0
	filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if name := d.Name(); d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "integration_test") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "go.mod") || strings.HasPrefix(path, "../examples/") {
			os.Stat(path)
			seen++
		}
		return nil
	})
	if seen < 20 {
		t.Errorf("%d source files are seen", seen)
	}
}
