package celldtest

import (
	"os"
	"path/filepath"
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
