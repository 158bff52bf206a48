package regular

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Replace writes a file in place of the one at a path: all of it or nothing. It first removes what killed processes have not finished. In
// one process, only one goroutine may replace a path at a time.
func Replace(path string, text []byte, mode os.FileMode) error {
	return replace(path, text, func(file *os.File) error { return file.Chmod(mode) })
}

// Rewrite is Replace of a file that is there, or that links lead to: the links stay. It keeps the mode, and the owner and group as far as
// this process may set them. What ReadFile would refuse is not written.
func Rewrite(path string, text []byte) error {
	if len(text) > most {
		return tooLarge(path)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	return replace(path, text, func(file *os.File) error {
		keepOwner(file, before)
		return file.Chmod(before.Mode().Perm())
	})
}

func replace(path string, text []byte, prepare func(*os.File) error) (err error) {
	RemoveLeft(path)
	file, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(text)
	err = errors.Join(err, prepare(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

func tempPrefix(path string) string { return filepath.Base(path) + ".tmp-" }

// RemoveLeft removes the files that processes killed within Replace have left beside a path. A file with the number of this process is from
// an earlier one: in containers, all have the same number. Nothing depends on it, so it returns no error.
func RemoveLeft(path string) {
	files, _ := os.ReadDir(filepath.Dir(path))
	for _, file := range files {
		rest, found := strings.CutPrefix(file.Name(), tempPrefix(path))
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.ParseUint(number, 10, 32)
		if found && err == nil && (int(pid) == os.Getpid() || !Lives(int(pid))) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), file.Name()))
		}
	}
}

// Lives reports whether there is a process of that number. It returns true if that cannot be known.
func Lives(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release()
	err = process.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
