package envoy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files writes files in a fresh directory: their names and texts. A text that begins with -> is where a link leads.
func files(t *testing.T, all map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range all {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	to, isLink := strings.CutPrefix(text, "->")
	var err error
	if isLink {
		err = os.Symlink(to, path)
	} else {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadFiles(t *testing.T) {
	for _, of := range []struct {
		about string
		files map[string]string
		path  string // in the directory
		want  string // name=text
		err   string // a part of it
	}{
		{"nothing", nil, "", "", ""},
		{"in the order of names", map[string]string{"b": "2", "a.yaml": "1", "c/a": "3", "c/b/a": "4"}, "", "a.yaml=1 b=2 c/a=3 c/b/a=4", ""},
		{"one file", map[string]string{"a": "1", "b": "2"}, "b", "b=2", ""},
		{"one file with a dot", map[string]string{".a": "1"}, ".a", ".a=1", ""},
		{"without dots", map[string]string{".a": "1", ".b/c": "2", "d": "3"}, "", "d=3", ""},
		{"a ConfigMap", map[string]string{"..2026/a": "1", "..data": "->..2026", "a": "->..data/a"}, "", "a=1", ""},
		{"a link to a directory", map[string]string{"x/a": "1", "y": "->x"}, "y", "y/a=1", ""},
		{"a circle", map[string]string{"x/a": "1", "x/x": "->../x"}, "", "", "too many directories in each other"},
		{"a link to itself", map[string]string{"a": "->a"}, "", "", "too many levels of symbolic links"},
		{"a link to nothing", map[string]string{"a": "->b"}, "", "", "no such file"},
		{"no file", nil, "a", "", "no such file"},
		{"no file either", map[string]string{"null": "->/dev/null"}, "", "", "is neither a file nor a directory"},
		{"long", map[string]string{"a": strings.Repeat("x", 16<<20)}, "", "a=" + strings.Repeat("x", 16<<20), ""},
		{"too long", map[string]string{"a": strings.Repeat("x", 16<<20), "b": "x"}, "", "", "the files are longer than 16 MB"},
	} {
		dir := files(t, of.files)
		list, err := readFiles(filepath.Join(dir, of.path))
		var got []string
		for _, file := range list {
			name, _ := filepath.Rel(dir, file.Name)
			got = append(got, name+"="+string(file.Text))
		}
		switch {
		case of.err != "" && (err == nil || !strings.Contains(err.Error(), of.err)):
			t.Errorf("%s: %v, want %s", of.about, err, of.err)
		case of.err == "" && (err != nil || strings.Join(got, " ") != of.want):
			t.Errorf("%s: %.200q, %v", of.about, got, err)
		}
	}
}

func TestWatcher(t *testing.T) {
	dir := files(t, map[string]string{"a": "domain: a"})
	w := &watcher{path: dir}
	look := func(hurry bool, want string) {
		t.Helper()
		set, changed, err := w.look(hurry)
		got := ""
		switch {
		case !changed && (set != nil || err != nil):
			got = "unclear"
		case err != nil:
			got = filepath.Base(err.Error())
		case changed:
			got = fmt.Sprint(set.Len())
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	look(true, "1")
	look(true, "")
	look(false, "")

	// A content counts when two looks have seen it.
	write(t, filepath.Join(dir, "b"), "domain: b")
	look(false, "")
	look(false, "2")
	look(false, "")

	// One that was half written is never used.
	write(t, filepath.Join(dir, "b"), "domain: b\ndescr")
	look(false, "")
	write(t, filepath.Join(dir, "b"), "domain: b\ndescriptors: []")
	look(false, "")
	look(false, "2")

	// A mistake is told once, and then what mends it counts, also where it is what was there before.
	write(t, filepath.Join(dir, "b"), "x: 1")
	look(false, "")
	look(false, "b: unknown key 'x'")
	look(false, "")
	look(true, "")
	write(t, filepath.Join(dir, "b"), "domain: b\ndescriptors: []")
	look(false, "")
	look(false, "2")

	// So it is with what cannot be read.
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	look(false, "")
	if _, changed, err := w.look(false); !changed || !os.IsNotExist(err) {
		t.Errorf("%v, %v", changed, err)
	}
	look(false, "")
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	look(false, "")
	look(false, "2")

	// What moves from one file into another is a change.
	if err := os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	look(true, "2")
}
