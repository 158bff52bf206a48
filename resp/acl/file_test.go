package acl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplaceEndsThoseThatChanged(t *testing.T) {
	table := testTable()
	us := NewUsers(table)
	us.SetPassword("p")
	read := func(text string) *File {
		f, err := ReadFile(table, write(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if ended := us.Replace(read("user same on >a +get\n\n user gone on\r\nuser changed on +get\n")); ended != nil {
		t.Errorf("%v", ended)
	}
	same, gone, changed, first := us.Get("same"), us.Get("gone"), us.Get("changed"), us.Default
	r := us.Default.Rights()
	if !r.MayAll() || us.Authenticate([]byte("default"), []byte("x")) != nil || us.Authenticate([]byte("default"), []byte("p")) == nil {
		t.Errorf("a file without it: %s", us.Default.Line())
	}
	ended := us.Replace(read("user same on +get >a\nuser changed on +set\nuser default on nopass +get"))
	if len(ended) != 2 || ended[0] != gone && ended[1] != gone || ended[0] != changed && ended[1] != changed {
		t.Errorf("%v", ended)
	}
	if us.Get("same") != same || us.Get("gone") != nil || us.Get("changed") == changed || us.Default != first ||
		us.Default.Rights().MayAll() {
		t.Errorf("%v", us.Sorted())
	}
	bytes := 0
	for _, u := range us.Sorted() {
		bytes += len(u.Line())
	}
	if bytes != us.bytes {
		t.Errorf("%d bytes, counted %d", bytes, us.bytes)
	}
}

// A save is read as it was, replaces a file with its permissions, and leaves no other file.
func TestSave(t *testing.T) {
	table := testTable()
	us := NewUsers(table)
	if err := us.Set("a", []string{"on", ">secret", "~a:*", "%R~b", "+@all", "-config|set"}); err != nil {
		t.Fatal(err)
	}
	path := write(t, "what was before\n")
	for range 2 {
		if err := us.Save(path); err != nil {
			t.Fatal(err)
		}
		f, err := ReadFile(table, path)
		if err != nil {
			t.Fatal(err)
		}
		if ended := us.Replace(f); ended != nil {
			t.Errorf("%v", ended)
		}
	}
	text, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	files, _ := os.ReadDir(filepath.Dir(path))
	if strings.Contains(string(text), "secret") || strings.Count(string(text), "\n") != 2 || info.Mode().Perm() != 0o640 ||
		len(files) != 1 {
		t.Errorf("%q, %v, %v", text, info.Mode(), files)
	}
	if err := us.Save(filepath.Join(path, "below", "a-file")); err == nil {
		t.Error("saved where there is no directory")
	}
	fresh := filepath.Join(t.TempDir(), "new")
	if err := us.Save(fresh); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(fresh); info.Mode().Perm() != 0o600 {
		t.Errorf("%v", info.Mode())
	}
}

// FuzzFile reads any file: an error of one line that names the file, or users that are saved and read alike.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "user a on >x ~a:* +get", "user a\nuser a", "user", "# comment", "user a +nosuch >\n\n user b\tx",
		"user default off\r\nuser  on", "user a (+get ~x) &x",
	} {
		f.Add(seed)
	}
	table := testTable()
	f.Fuzz(func(t *testing.T, text string) {
		read, err := parse(table, "users.acl", text)
		if err != nil {
			if !strings.Contains(err.Error(), "users.acl:") && !strings.Contains(err.Error(), "on line ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		us := NewUsers(table)
		us.Replace(read)
		var lines strings.Builder
		for _, u := range us.Sorted() {
			lines.WriteString(u.Line() + "\n")
		}
		again, err := parse(table, "users.acl", lines.String())
		if err != nil {
			t.Fatalf("%q: %q: %v", text, lines.String(), err)
		}
		if ended := us.Replace(again); ended != nil {
			t.Errorf("%q: %q: %d have changed", text, lines.String(), len(ended))
		}
	})
}
