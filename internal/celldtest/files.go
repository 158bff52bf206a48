package celldtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ReadFile is the text of a file, whose path is given in parts.
func ReadFile(t testing.TB, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WriteFile makes a file, whose path is given in parts.
func WriteFile(t testing.TB, text string, elem ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(elem...), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TempFile makes a file in a folder of the test's own, and returns its path.
func TempFile(t testing.TB, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	WriteFile(t, text, path)
	return path
}

// Tree makes files in a folder of the test's own: their names and texts. A text that begins with -> is where a link leads.
func Tree(t testing.TB, all map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		to, isLink := strings.CutPrefix(text, "->")
		if !isLink {
			WriteFile(t, text, path)
		} else if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
