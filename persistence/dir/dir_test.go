package dir_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"celld/persistence/dir"
)

func newDir(path string) (*dir.Dir, *bytes.Buffer) {
	var log bytes.Buffer
	return &dir.Dir{Path: path, FS: dir.System{}, Log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

func names(t *testing.T, path string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// A file is replaced as a whole, and only by the process that has locked the directory.
func TestPlace(t *testing.T) {
	d, _ := newDir(t.TempDir())
	if err := d.CheckWritable(); err != nil || len(names(t, d.Path)) != 0 {
		t.Errorf("%v; %q are there", err, names(t, d.Path))
	}
	write := func(text string) func(dir.File) error {
		return func(f dir.File) error { _, err := f.Write([]byte(text)); return err }
	}
	replace := func(text string) error {
		temp, err := d.WriteTemp("rdb", write(text))
		if err != nil {
			return err
		}
		return d.Place(temp, d.Join("dump.rdb"))
	}
	other, _ := newDir(d.Path)
	for _, text := range []string{"first", "second"} {
		if err := replace(text); err != nil {
			t.Fatal(err)
		}
	}
	if !d.Claimed() || other.Claimed() || !errors.Is(other.Claim(), dir.ErrInUse) {
		t.Error("what replaces a file does not lock the directory")
	}
	full := errors.New("full")
	if _, err := d.WriteTemp("rdb", func(dir.File) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	d.Release()
	if err := other.Wait(0, func() bool { return false }); err != nil || d.Claimed() {
		t.Errorf("the directory is free: %v", err)
	}
	if err := replace("third"); !errors.Is(err, dir.ErrInUse) {
		t.Errorf("another process has the directory: %v", err)
	}
	if err := d.Wait(time.Hour, func() bool { return true }); !errors.Is(err, dir.ErrInUse) {
		t.Errorf("stopped: %v", err)
	}
	if text, err := os.ReadFile(d.Join("dump.rdb")); string(text) != "second" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if got := names(t, d.Path); !slices.Equal(got, []string{"celld.lock", "dump.rdb"}) {
		t.Errorf("%q are there", got)
	}
	gone, _ := newDir(filepath.Join(d.Path, "none"))
	if gone.CheckWritable() == nil || gone.Claim() == nil || gone.Abs() != filepath.Join(d.Path, "none") {
		t.Error("there is no such directory")
	}
}

// Files that dead processes have left are removed. Files of other processes, and files with other names, stay.
func TestRemoveLeft(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := ended.Process.Pid
	d, log := newDir(t.TempDir())
	stays := []string{fmt.Sprintf("temp-%d.rdb", os.Getppid()), fmt.Sprintf("temp-%d.txt", dead), "temp-0.rdb", "dump.rdb"}
	for _, name := range append(stays, fmt.Sprintf("temp-%d.aof", dead), fmt.Sprintf("temp-%d.rdb", os.Getpid()),
		fmt.Sprintf("temp-%d.check", math.MaxInt32)) {
		if err := os.WriteFile(d.Join(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.RemoveLeft()
	slices.Sort(stays)
	if got := names(t, d.Path); !slices.Equal(got, stays) || bytes.Count(log.Bytes(), []byte("the unfinished files")) != 1 {
		t.Errorf("%q are there, want %q; %s", got, stays, log)
	}
}
