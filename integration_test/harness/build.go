package harness

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the folder of the product's module, seen from the folder of a test.
const root = "../.."

// BuildFlags are the flags with which the Dockerfile builds the binary.
var BuildFlags = []string{"-trimpath", "-ldflags=-s -w"}

var (
	static   = sync.OnceValues(func() (string, error) { return build(root, ".", []string{"CGO_ENABLED=0"}, BuildFlags...) })
	detector = sync.OnceValues(func() (string, error) { return build(root, ".", []string{"CGO_ENABLED=1"}, "-race") })
	examples sync.Map // by folder, what builds it once
)

// Binary is the path of the static binary, as in the Docker image. CELLD_BINARY in the environment is the path of another.
func Binary(t testing.TB) string {
	t.Helper()
	if other := os.Getenv("CELLD_BINARY"); other != "" {
		return other
	}
	path, err := static()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// StressBinary is the path of the binary for tests of many clients at once. With CELLD_RACE=1 in the environment it is built with the
// race detector, whose findings end a server with a code other than 0.
func StressBinary(t testing.TB) string {
	t.Helper()
	if os.Getenv("CELLD_RACE") == "" {
		return Binary(t)
	}
	path, err := detector()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Example is the path of the program in a folder of examples/.
func Example(t testing.TB, folder string) string {
	t.Helper()
	built, _ := examples.LoadOrStore(folder, sync.OnceValues(func() (string, error) {
		return build(root+"/examples", "./"+folder, nil) // as go test builds, which has compiled much of it already
	}))
	path, err := built.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build returns the path of a program in Go's build cache, where go run keeps what it links, by content. So the packages of
// tests that start at once, and later runs, share one binary, and none replaces another's.
func build(dir, pkg string, env []string, flags ...string) (path string, err error) {
	SeeSources()
	for range 2 { // the run that links prints a path that is gone when it ends
		cmd := exec.Command("go", append(append([]string{"run", "-exec", "echo"}, flags...), pkg)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); ok {
			return "", fmt.Errorf("go run: %w\n%s", err, exit.Stderr)
		}
		if err != nil {
			return "", err
		}
		path = strings.TrimSpace(string(out))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("go run keeps no binary: %s is gone", path)
}

// SeeSources looks at each file of the product, its pages and examples, and returns how many there are. So go test's cache of results
// knows what the tests depend on. It takes note of files only while tests run, and only of those below the module's folder: testdata/celld
// is a link to the product.
func SeeSources() (seen int) {
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if name := d.Name(); d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "integration_test" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		os.Stat(root + "/integration_test/harness/testdata/celld" + strings.TrimPrefix(path, root))
		seen++
		return nil
	})
	return seen
}
