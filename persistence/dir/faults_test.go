package dir_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/persistence/dir"
)

// ill is a file system that answers some calls otherwise.
type ill struct {
	dir.System
	lock   func(name string) (dir.File, error) // nil: as it is
	names  func() (bool, error)
	closed int
}

func (f *ill) Lock(name string) (dir.File, error) {
	if f.lock != nil {
		return f.lock(name)
	}
	file, err := f.System.Lock(name)
	if err != nil {
		return nil, err
	}
	return closing{file, &f.closed}, nil
}

func (f *ill) Names(name string, file dir.File) (bool, error) {
	if f.names != nil {
		return f.names()
	}
	return f.System.Names(name, file.(closing).File)
}

// closing counts closes.
type closing struct {
	dir.File
	n *int
}

func (c closing) Close() error { *c.n++; return c.File.Close() }

func illDir(t *testing.T) (*dir.Dir, *ill, *bytes.Buffer) {
	d, log := newDir(t.TempDir())
	f := &ill{}
	d.FS = f
	return d, f, log
}

// An error that keeps the directory from being locked is returned, and a lock that others hold meanwhile is tried again.
func TestClaim(t *testing.T) {
	d, f, _ := illDir(t)
	if d.Claimed() || d.Claim() != nil || !d.Claimed() || d.Claim() != nil || f.closed != 0 {
		t.Error("the directory is free")
	}
	f.names = func() (bool, error) { return false, syscall.EIO }
	if err := d.Claim(); !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "look for the lock") || !d.Claimed() {
		t.Errorf("where the lock cannot be looked for: %v", err)
	}
	f.names = nil
	if err := os.Remove(d.Join("celld.lock")); err != nil {
		t.Fatal(err)
	}
	if err := d.Claim(); err != nil || f.closed != 1 {
		t.Errorf("the lock was removed: %v, and %d files were closed", err, f.closed)
	}
	d.Release()
	d.Release()
	if d.Claimed() || f.closed != 2 {
		t.Errorf("released, and %d files were closed", f.closed)
	}
	looks := 0
	f.names = func() (bool, error) { looks++; return looks > 9, nil }
	if err := d.Claim(); err != nil || looks != 10 || f.closed != 11 {
		t.Errorf("removed nine times: %v, %d looks, %d files were closed", err, looks, f.closed)
	}
	d.Release()
	looks, f.names = 0, func() (bool, error) { looks++; return false, nil }
	if err := d.Claim(); err == nil || !strings.HasSuffix(err.Error(), "again and again") || looks != 11 || d.Claimed() {
		t.Errorf("removed each time: %v, %d looks", err, looks)
	}
	f.names = func() (bool, error) { return false, syscall.EIO }
	if err := d.Claim(); !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "lock "+d.Join("celld.lock")) || d.Claimed() {
		t.Error(err)
	}
	f.lock = func(string) (dir.File, error) { return nil, syscall.EACCES }
	if err := d.Claim(); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "(--dir)") {
		t.Error(err)
	}
	temp, err := d.WriteTemp("rdb", func(dir.File) error { return nil })
	if err != nil || d.Place(temp, d.Join("a")) == nil || d.Has(temp) {
		t.Errorf("%v, and the file of a process that has no lock stays", err)
	}
}

// A file system without locks is used with a warning.
func TestNoLocks(t *testing.T) {
	d, f, log := illDir(t)
	f.lock = func(name string) (dir.File, error) {
		file, err := f.System.Append(name)
		return closing{file, &f.closed}, errors.Join(dir.ErrNoLocks, err)
	}
	if err := d.Claim(); err != nil || !d.Claimed() || strings.Count(log.String(), "make sure that no other process uses it") != 1 {
		t.Errorf("%v; %s", err, log)
	}
}

// Wait waits until its time is over, it is told to stop, or the directory is free.
func TestWait(t *testing.T) {
	d, f, log := illDir(t)
	never := func() bool { return false }
	f.lock = func(string) (dir.File, error) { return nil, syscall.EIO }
	if err := d.Wait(time.Hour, never); !errors.Is(err, syscall.EIO) {
		t.Errorf("what is no other process is waited for: %v", err)
	}
	tries := 0
	f.lock = func(string) (dir.File, error) { tries++; return nil, dir.ErrInUse }
	if err := d.Wait(0, never); !errors.Is(err, dir.ErrInUse) || tries != 1 || strings.Contains(err.Error(), "waited") || log.Len() > 0 {
		t.Errorf("%v after %d tries; %s", err, tries, log)
	}
	if err := d.Wait(time.Hour, func() bool { return true }); !errors.Is(err, dir.ErrInUse) || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	err := d.Wait(60*time.Millisecond, never)
	if !errors.Is(err, dir.ErrInUse) || !strings.HasSuffix(err.Error(), "; waited 60ms (--dir-lock-wait)") || tries < 4 || tries > 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if strings.Count(log.String(), "waiting for another process to leave the directory") != 1 {
		t.Errorf("%s", log)
	}
	tries, f.lock = 0, func(name string) (dir.File, error) {
		if tries++; tries < 3 {
			return nil, dir.ErrInUse
		}
		file, err := f.System.Lock(name)
		return closing{file, &f.closed}, err
	}
	if err := d.Wait(time.Hour, never); err != nil || !d.Claimed() {
		t.Error(err)
	}
}

// A name leads to an open file or not; where that cannot be known there is an error, and a file counts as there.
func TestNames(t *testing.T) {
	d, _ := newDir(t.TempDir())
	var s dir.System
	a, err := s.Create(d.Join("a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "true <nil>", "none": "false <nil>", "other": "false <nil>", "a/b": "false"} {
		if name == "other" {
			if err := os.WriteFile(d.Join(name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		same, err := s.Names(d.Join(name), a)
		if got := fmt.Sprint(same, " ", err); !strings.HasPrefix(got, want) || (name == "a/b") != (err != nil) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if d.Has(d.Join("none")) || !d.Has(d.Join("a")) || !d.Has(d.Join("a/b")) {
		t.Error("Has")
	}
	a.Close()
	if same, err := s.Names(d.Join("a"), a); same || err != nil {
		t.Errorf("a closed file: %v, %v", same, err)
	}
	if err := s.Rename(d.Join("none"), d.Join("b")); !errors.Is(err, os.ErrNotExist) || errors.Is(err, dir.ErrNotLasting) {
		t.Error(err)
	}
	if _, err := s.List(d.Join("none")); err == nil {
		t.Error("a folder that is not there is listed")
	}
	if d.Path = ""; d.Clean() != "." || d.Abs() == "" || !filepath.IsAbs(d.Abs()) {
		t.Errorf("%q, %q", d.Clean(), d.Abs())
	}
}

// noted is a file that notes what is asked of it.
type noted struct {
	dir.File
	calls []string
	err   error
}

func (n *noted) Write(b []byte) (int, error) {
	n.calls = append(n.calls, fmt.Sprint("write ", len(b)))
	return len(b), n.err
}
func (n *noted) Sync() error          { n.calls = append(n.calls, "sync"); return n.err }
func (n *noted) Forget(at, len int64) { n.calls = append(n.calls, fmt.Sprint("forget ", at, "+", len)) }
func (n *noted) Truncate(size int64) error {
	n.calls = append(n.calls, fmt.Sprint("cut ", size))
	return n.err
}

// Every 4 MB what was written is synced and forgotten.
func TestPaced(t *testing.T) {
	f := &noted{}
	p := &dir.Paced{File: f, Size: 100, Forgotten: 100}
	expect := func(what string, calls ...string) {
		t.Helper()
		if got, want := strings.Join(f.calls, ", "), strings.Join(calls, ", "); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		f.calls = nil
	}
	write := func(n int) {
		t.Helper()
		if written, err := p.Write(make([]byte, n)); written != n || err != f.err {
			t.Errorf("%d, %v", written, err)
		}
	}
	write(4<<20 - 1)
	expect("less than 4 MB", "write 4194303")
	write(1)
	expect("4 MB", "write 1", "sync", "forget 100+4194304")
	write(9)
	if err := p.Sync(); err != nil {
		t.Error(err)
	}
	expect("Sync", "write 9", "sync", "forget 4194404+9")
	if err := p.Truncate(50); err != nil || p.Size != 50 || p.Forgotten != 50 {
		t.Errorf("%v %+v", err, p)
	}
	write(5)
	if err := p.Truncate(52); err != nil || p.Size != 52 || p.Forgotten != 50 {
		t.Errorf("%v %+v", err, p)
	}
	f.err, f.calls = syscall.EIO, nil
	if err := p.Truncate(10); err != syscall.EIO || p.Size != 52 {
		t.Errorf("%v %+v", err, p)
	}
	if err := p.Sync(); err != syscall.EIO || p.Forgotten != 50 {
		t.Errorf("%v %+v", err, p)
	}
	expect("a disk that fails", "cut 10", "sync")
	write(5 << 20)
	expect("a disk that fails", "write 5242880")
}
