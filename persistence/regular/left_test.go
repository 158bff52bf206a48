package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What a process killed within Replace has left is removed by the next one. What another process writes stays.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "users.acl")
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		fmt.Sprintf("users.acl.tmp-%d-123", ended.Process.Pid), fmt.Sprintf("users.acl.tmp-%d-4", os.Getpid()),
		fmt.Sprintf("users.acl.tmp-%d", ended.Process.Pid),
		fmt.Sprintf("users.acl.tmp-%d-123", os.Getppid()), "users.acl.tmp-x", "users.acl.tmp-", "users.acl",
		fmt.Sprintf("other.tmp-%d-1", ended.Process.Pid),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replace(path, []byte("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	if string(text) != "text" || info.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v", text, info.Mode())
	}
	var names []string
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		names = append(names, file.Name())
	}
	want := []string{fmt.Sprintf("other.tmp-%d-1", ended.Process.Pid), "users.acl", "users.acl.tmp-",
		fmt.Sprintf("users.acl.tmp-%d-123", os.Getppid()), "users.acl.tmp-x"}
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if err := Replace(filepath.Join(dir, "none", "x"), nil, 0o600); err == nil {
		t.Error("written where there is no directory")
	}
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "full", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "full"), nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if files, _ := os.ReadDir(dir); len(files) != len(want)+1 {
		t.Errorf("%v are left", files)
	}
}

// Rewrite keeps the mode, the owner and the links that lead to a file. What cannot be written leaves it as it is.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real", "policies"), filepath.Join(dir, "policies")
	for _, err := range []error{os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("before"), 0o600), os.Chmod(path, 0o644),
		os.Symlink(path, filepath.Join(dir, "..data")), os.Symlink("..data", link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root := os.Getuid() == 0
	if root {
		if err := os.Chown(path, 4711, 4712); err != nil {
			t.Fatal(err)
		}
	}
	if err := Rewrite(link, []byte("text")); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		text, _ := os.ReadFile(path)
		info, _ := os.Lstat(path)
		to, _ := os.Readlink(link)
		if string(text) != "text" || info.Mode() != 0o644 || to != "..data" {
			t.Errorf("%q, %v, the link leads to %q", text, info.Mode(), to)
		}
		if of := info.Sys().(*syscall.Stat_t); root && (of.Uid != 4711 || of.Gid != 4712) {
			t.Errorf("it belongs to %d:%d", of.Uid, of.Gid)
		}
		if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
			t.Errorf("%v are left", files)
		}
	}
	check()
	if err := Rewrite(link, make([]byte, most+1)); err == nil || !strings.Contains(err.Error(), "larger than 16 MB") {
		t.Error(err)
	}
	check()
	if err := os.Symlink("nosuch", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dangling", "none"} {
		if err := Rewrite(filepath.Join(dir, name), nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
