package regular

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
