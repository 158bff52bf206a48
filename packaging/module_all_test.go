//go:build all

package packaging

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"celld/internal/celldtest"
)

// A copy with another path builds, and another module can import package cell from it.
func TestModule(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "copy")
	in := func(where string, words ...string) (string, error) {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = where
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(where string, words ...string) string {
		t.Helper()
		out, err := in(where, words...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
		return out
	}
	must(".", "git", "clone", "--quiet", "..", dir)
	out, err := in(dir, "make", "module", "NAME=celld")
	if err == nil || !strings.Contains(out, "expected one such as example.org/you/celld") {
		t.Errorf("a name that is no path: %v, %s", err, out)
	}
	must(dir, "make", "module", "NAME=example.org/you/celld")
	if left := must(dir, "sh", "-c", `git grep -nE '"celld/(cell|resp|store)' -- '*.go' || true`); left != "" {
		t.Errorf("the old path is left:\n%s", left)
	}
	for _, module := range []string{".", "bench", "integration_test", "examples", "packaging"} {
		must(filepath.Join(dir, module), "go", "vet", "-tags", "all", "./...")
	}
	must(dir, "go", "test", "-run", "Example|TestLayers", "./cell", "./docs")

	user := t.TempDir()
	celldtest.WriteFile(t, "module example.org/user\n\ngo 1.26\n\nrequire example.org/you/celld v0.0.0\n\n"+
		"replace example.org/you/celld => "+dir+"\n", user, "go.mod")
	celldtest.WriteFile(t, `package main

import (
	"fmt"

	"example.org/you/celld/cell"
)

func main() {
	limit, err := cell.ParseLimit("100/1m")
	fmt.Println(limit.Capacity(), err)
}
`, user, "main.go")
	if out := must(user, "go", "run", "-mod=mod", "."); !strings.HasSuffix(out, "100 <nil>\n") {
		t.Errorf("it prints %s", out)
	}
}
