package harness

import (
	"os"
	"path/filepath"
	"testing"

	"celld/internal/celldtest"
)

// CachePath is a path in .cache/, whose folder exists.
func CachePath(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, ".cache", path))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// JavaClasses compiles a Maven project with libraries that it downloads, and returns the class path of both.
func JavaClasses(t testing.TB, project string) string {
	t.Helper()
	dir := t.TempDir() // where Maven writes
	if err := os.CopyFS(dir, os.DirFS(project)); err != nil {
		t.Fatal(err)
	}
	build := Command(t, celldtest.Need(t, "mvn"), "--quiet", "--batch-mode", "-Dmaven.repo.local="+CachePath(t, "maven"), "compile",
		"dependency:build-classpath", "-Dmdep.outputFile=classpath")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "target/classes") + ":" + celldtest.ReadFile(t, dir, "classpath")
}
