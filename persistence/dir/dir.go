// Package dir locks the directory of the data for one process, and replaces files there as a whole. It does not know what is in them.
//
//	d := &dir.Dir{Path: "/data", FS: dir.System{}, Log: log}
//	err := d.Claim()                                // or Wait
//	temp, err := d.WriteTemp("rdb", write)          // complete and on the disk
//	err = d.Place(temp, d.Join("dump.rdb"))
//	d.Release()
package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"celld/persistence/regular"
)

// Dir is a directory. Set its fields before it is used.
type Dir struct {
	Path string // "": the working directory
	FS   FileSystem
	Log  *slog.Logger

	mu     sync.Mutex
	locked File // the lock; nil: not taken. It ends with the process in any case: Go opens files so that no child inherits them
}

// Join is the path of a file in the directory.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path, name) }

// Clean is the path of the directory, "." where none is given.
func (d *Dir) Clean() string { return filepath.Clean(d.Path) }

// Abs is its absolute path, for messages.
func (d *Dir) Abs() string {
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return d.Clean()
	}
	return path
}

// Has reports whether there is such a file. It returns true if that cannot be known.
func (d *Dir) Has(path string) bool {
	f, err := d.FS.Open(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.Close()
	return true
}

// Temp returns the path of an incomplete file of this process.
func (d *Dir) Temp(kind string) string {
	return d.Join("temp-" + strconv.Itoa(os.Getpid()) + "." + kind)
}

// tempName matches what Temp returns, for every process.
var tempName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^temp-([1-9][0-9]{0,9})\.(rdb|aof|check)$`)
})

// WriteTemp writes a temporary file and syncs it. After an error it removes the file.
func (d *Dir) WriteTemp(kind string, write func(File) error) (name string, err error) {
	name = d.Temp(kind)
	created, err := d.FS.Create(name)
	if err != nil {
		return "", err
	}
	f := &Paced{File: created}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = d.FS.Remove(name)
	}
	return name, err
}

// Place renames a complete file to its final path, if the directory is still locked for this process. After an error it removes the file.
func (d *Dir) Place(temp, path string) error {
	err := d.Claim()
	if err == nil {
		err = d.FS.Rename(temp, path)
	}
	if err != nil {
		_ = d.FS.Remove(temp)
	}
	return err
}

// CheckWritable checks that the directory exists and can be written to.
func (d *Dir) CheckWritable() error {
	f, err := d.FS.Create(d.Temp("check"))
	if err != nil {
		return fmt.Errorf("cannot write to the directory of the data (--dir): %w", err)
	}
	f.Close()
	return d.FS.Remove(d.Temp("check"))
}

// RemoveLeft removes temporary files that killed processes have left. Each is as large as the data, so a server that is killed again and
// again would fill the disk. Call it before this process makes its first: a file with the number of this process is from an earlier one,
// as in containers all have the same number. Nothing depends on it, so a failure is only logged.
func (d *Dir) RemoveLeft() {
	names, err := d.FS.List(d.Clean())
	var removed []string
	for _, name := range names {
		match := tempName().FindStringSubmatch(name)
		if match == nil {
			continue
		}
		if pid, _ := strconv.Atoi(match[1]); pid != os.Getpid() && regular.Lives(pid) {
			continue
		}
		if failed := d.FS.Remove(d.Join(name)); failed != nil {
			err = failed
			continue
		}
		removed = append(removed, name)
	}
	if len(removed) > 0 {
		d.Log.Info("removed the unfinished files of killed processes", "dir", d.Clean(), "files", removed)
	}
	if err != nil {
		d.Log.Warn("cannot remove the unfinished files of killed processes", "error", err)
	}
}
