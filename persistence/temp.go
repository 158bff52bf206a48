package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"celld/persistence/regular"
)

// temp returns the path of an incomplete file of this process.
func (d *Disk) temp(kind string) string {
	return filepath.Join(d.o.Dir, "temp-"+strconv.Itoa(os.Getpid())+"."+kind)
}

// tempName matches what temp returns, for every process.
var tempName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^temp-([1-9][0-9]{0,9})\.(rdb|aof|check)$`)
})

// writeTemp writes a temporary file and syncs it. After an error it removes the file.
func (d *Disk) writeTemp(kind string, write func(File) error) (name string, err error) {
	name = d.temp(kind)
	created, err := d.files.Create(name)
	if err != nil {
		return "", err
	}
	f := &paced{File: created}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = d.files.Remove(name)
	}
	return name, err
}

// place renames a complete file to its final path, if this process still has the directory. After an error it removes the file.
func (d *Disk) place(temp, path string) error {
	err := d.Claim()
	if err == nil {
		err = d.files.Rename(temp, path)
	}
	if err != nil {
		_ = d.files.Remove(temp)
	}
	return err
}

// checkDir checks that the directory exists and can be written to.
func (d *Disk) checkDir() error {
	f, err := d.files.Create(d.temp("check"))
	if err != nil {
		return fmt.Errorf("cannot write to the directory of the data (--dir): %w", err)
	}
	f.Close()
	return d.files.Remove(d.temp("check"))
}

// removeLeft removes temporary files that killed processes have left. Each is as large as the data, so a server that is
// killed again and again would fill the disk. It runs before this process makes its first one: a file with this process's
// number is an earlier process's, as in containers all have the same number. Nothing depends on it, so a failure is only
// logged.
func (d *Disk) removeLeft() {
	names, err := d.files.List(d.dir())
	var removed []string
	for _, name := range names {
		match := tempName().FindStringSubmatch(name)
		if match == nil {
			continue
		}
		if pid, _ := strconv.Atoi(match[1]); pid != os.Getpid() && regular.Lives(pid) {
			continue
		}
		if failed := d.files.Remove(filepath.Join(d.o.Dir, name)); failed != nil {
			err = failed
			continue
		}
		removed = append(removed, name)
	}
	if len(removed) > 0 {
		d.log.Info("removed what killed processes had not finished", "dir", d.dir(), "files", removed)
	}
	if err != nil {
		d.log.Warn("what killed processes may have left cannot be removed", "error", err)
	}
}
