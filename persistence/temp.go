package persistence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// temp is the name of a file that is not complete yet.
func (d *Disk) temp(kind string) string {
	return filepath.Join(d.o.Dir, "temp-"+strconv.Itoa(os.Getpid())+"."+kind)
}

// tempName matches what temp returns, for every process.
var tempName = regexp.MustCompile(`^temp-([1-9][0-9]{0,9})\.(rdb|aof|check)$`)

// writeTemp writes a file that is not in its place yet, and has it on the disk. After an error no file is left.
func (d *Disk) writeTemp(kind string, write func(File) error) (name string, err error) {
	name = d.temp(kind)
	f, err := d.create(name)
	if err != nil {
		return "", err
	}
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

// place puts a file that is complete into its place, if the directory is still this process's. Otherwise the file is removed.
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

// checkDir makes sure that the directory is there and can be written to, before anything relies on it.
func (d *Disk) checkDir() error {
	f, err := d.files.Create(d.temp("check"))
	if err != nil {
		return fmt.Errorf("cannot write to the directory of the data (--dir): %w", err)
	}
	f.Close()
	return d.files.Remove(d.temp("check"))
}

// removeLeft removes files that processes were killed over, or a server that is restarted again and again would fill the disk,
// each of them as large as the data. It comes before the first is made here: one of this process's number is of another,
// as in containers all have the same. Nothing depends on it, so a failure is only told.
func (d *Disk) removeLeft() {
	names, err := d.files.List(d.dir())
	var removed []string
	for _, name := range names {
		match := tempName.FindStringSubmatch(name)
		if match == nil {
			continue
		}
		if pid, _ := strconv.Atoi(match[1]); pid != os.Getpid() && lives(pid) {
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

// lives says whether there is a process of that number, or whether that cannot be known.
func lives(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release()
	err = process.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
