package regular

import (
	"path/filepath"
	"strings"
	"testing"

	"celld/internal/celldtest"
)

// Walk visits files in their order, those that links lead to as well. What cannot be read is an error, and hides no other file.
func TestWalk(t *testing.T) {
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
		{"a circle", map[string]string{"x/a": "1", "x/x": "->../x"}, "", strings.TrimSpace(circle()), "too many directories in each other"},
		{"a link to itself", map[string]string{"a": "->a"}, "", "", "too many levels of symbolic links"},
		{"a link to nothing", map[string]string{"a": "->b"}, "", "", "no such file"},
		{"others beside it", map[string]string{"a": "->b", "c": "1"}, "", "c=1", "no such file"},
		{"no file", nil, "a", "", "no such file"},
		{"no file either", map[string]string{"null": "->/dev/null"}, "", "", "is neither a file nor a directory"},
		{"long", map[string]string{"a": strings.Repeat("x", 16<<20)}, "", "a=" + strings.Repeat("x", 16<<20), ""},
		{"too long", map[string]string{"a": strings.Repeat("x", 16<<20-1), "b": "yy", "c": "z"}, "", "a=" + strings.Repeat("x", 16<<20-1), "the files are longer than 16 MB"},
	} {
		dir := celldtest.Tree(t, of.files)
		var got []string
		err := Walk(filepath.Join(dir, of.path), func(name string, text []byte) {
			name, _ = filepath.Rel(dir, name)
			got = append(got, name+"="+string(text))
		})
		switch {
		case of.err != "" && (err == nil || !strings.Contains(err.Error(), of.err)):
			t.Errorf("%s: %v, want %s", of.about, err, of.err)
		case (err == nil) != (of.err == "") || strings.Join(got, " ") != of.want:
			t.Errorf("%s: %.200q, %v", of.about, got, err)
		}
	}
}

// circle is what is found where a directory has a link to itself.
func circle() (found string) {
	for depth := range mostDepth {
		found += " x/" + strings.Repeat("x/", depth) + "a=1"
	}
	return found
}
