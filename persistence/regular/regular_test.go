package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// As Kubernetes mounts a secret: two links lead to a file.
	must(os.Mkdir(in("..2026"), 0o700))
	must(os.WriteFile(in("..2026/users.acl"), []byte("text"), 0o600))
	must(os.Symlink("..2026", in("..data")))
	must(os.Symlink("..data/users.acl", in("users.acl")))
	for _, path := range []string{in("..2026/users.acl"), in("users.acl")} {
		if text, err := ReadFile(path); string(text) != "text" || err != nil {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	f, err := OpenFile(in("new"), os.O_RDWR|os.O_CREATE, 0o600)
	must(err)
	must(f.Close())
	if _, err := Open(in("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}

	must(syscall.Mkfifo(in("fifo"), 0o600))
	must(os.Symlink("fifo", in("link")))
	ln, err := net.Listen("unix", in("socket"))
	must(err)
	defer ln.Close()
	read, write, err := os.Pipe() // as <(…) of a shell
	must(err)
	defer read.Close()
	defer write.Close()
	for path, want := range map[string]string{
		in("fifo"): "it is a pipe, not a regular file", in("link"): "it is a pipe, not a regular file",
		dir: "it is a directory, not a regular file", in("socket"): "it is a socket, not a regular file",
		"/dev/zero": "it is a device, not a regular file", fmt.Sprintf("/dev/fd/%d", read.Fd()): "it is a pipe, not a regular file",
	} {
		for _, flags := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE | os.O_APPEND} {
			if _, err := OpenFile(path, flags, 0o600); err == nil || err.Error() != "open "+path+": "+want {
				t.Errorf("%s: %v", path, err)
			}
		}
		if _, err := ReadFile(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

func TestReadFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for size, good := range map[int64]bool{most: true, most + 1: false} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if text, err := ReadFile(path); (err == nil) != good || good && int64(len(text)) != size ||
			!good && !strings.Contains(err.Error(), path) {
			t.Errorf("%d bytes: %d, %v", size, len(text), err)
		}
	}
}
