package dir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"celld/persistence/regular"
)

// FileSystem is what celld needs of a file system. Tests use one that fails.
type FileSystem interface {
	Open(name string) (File, error)   // to read
	Create(name string) (File, error) // empty, to write
	Append(name string) (File, error) // as it is or new, to write at its end and to read. The directory of a new one is synced
	Rename(from, to string) error     // and sync the directory
	Remove(name string) error
	List(dir string) ([]string, error) // the names of the plain files in it

	// Lock opens or creates a file, and locks it until it is closed. The error is ErrInUse if another process has locked it.
	Lock(name string) (File, error)
	Names(name string, f File) (bool, error) // reports whether name still leads to the open file f
}

// File is an open file.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error        // what was written is on the disk when it returns
	Forget(at, n int64) // the kernel may drop these bytes, which are on the disk, from its cache
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// System is the operating system's file system.
type System struct{}

type systemFile struct{ *os.File }

func (f systemFile) Sync() error { return dataSync(f.File) }

func (f systemFile) Forget(at, n int64) { dropCache(f.File, at, n) }

func (System) Open(name string) (File, error) { return open(name, os.O_RDONLY) }

func (System) Create(name string) (File, error) {
	return open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (System) Append(name string) (File, error) {
	f, err := open(name, os.O_RDWR|os.O_APPEND)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = open(name, os.O_RDWR|os.O_CREATE|os.O_APPEND); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(name)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (System) Names(name string, f File) (bool, error) {
	named, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat() // fails on NFS if another host has removed the file
	return err == nil && os.SameFile(named, info), nil
}

func (System) Remove(name string) error { return os.Remove(name) }

func (System) List(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// ErrNotLasting means that a file was renamed, but may return to its old name after a crash.
var ErrNotLasting = errors.New("renamed, but perhaps not on the disk")

func (System) Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(to)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotLasting, err)
	}
	return nil
}

// syncDir puts the names in a directory on the disk. Without it a new file, or all that was written to it, may be gone after a loss of
// power.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

func open(name string, flags int) (File, error) {
	f, err := regular.OpenFile(name, flags, 0o644)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}
