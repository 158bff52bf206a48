package persistence

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// FileSystem is what of a file system is needed. Tests put one in between that fails.
type FileSystem interface {
	Open(name string) (File, error)   // to read
	Create(name string) (File, error) // empty, to write
	Append(name string) (File, error) // as it is or new, to write at its end and to read
	Rename(from, to string) error     // and have it last
	Remove(name string) error
}

// File is an open file.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error // has what was written last
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// system is the file system itself.
type system struct{}

type systemFile struct{ *os.File }

func (f systemFile) Sync() error { return dataSync(f.File) }

func (system) Open(name string) (File, error) { return open(name, os.O_RDONLY) }

func (system) Create(name string) (File, error) {
	return open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (system) Append(name string) (File, error) {
	return open(name, os.O_RDWR|os.O_CREATE|os.O_APPEND)
}

func (system) Remove(name string) error { return os.Remove(name) }

// errNotLasting is that a file has its new name, and may have the old one again after a crash.
var errNotLasting = errors.New("renamed, but perhaps not on the disk")

func (system) Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotLasting, err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("%w: sync %s: %w", errNotLasting, dir.Name(), err)
	}
	return nil
}

func open(name string, flags int) (File, error) {
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}
