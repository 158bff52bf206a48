package dir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"celld/persistence/dir"

	"golang.org/x/sys/unix"
)

// A new or renamed file is not reported as on the disk before its directory is: a process whose fsync fails gets an error.
func TestNamesAreSynced(t *testing.T) {
	const child = "CELLD_TEST_RENAME_IN"
	path := os.Getenv(child)
	if path == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNamesAreSynced$")
		cmd.Env = append(os.Environ(), child+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	from, to := filepath.Join(path, "from"), filepath.Join(path, "to")
	if err := os.WriteFile(from, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	failFsync(t)
	if err := (dir.System{}).Rename(from, to); !errors.Is(err, dir.ErrNotLasting) || !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("Rename: %v", err)
	}
	if _, err := (dir.System{}).Append(filepath.Join(path, "new")); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("Append of a new file: %v", err)
	}
	if f, err := (dir.System{}).Append(to); err != nil {
		t.Errorf("Append of a file that is there: %v", err)
	} else {
		f.Close()
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

// failFsync fails each fsync on this thread with EDQUOT, by a filter of system calls.
func failFsync(t *testing.T) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FSYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EDQUOT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		t.Fatal(err)
	}
}
