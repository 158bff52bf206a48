package sessiontest

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"celld/internal/celldtest"
	"celld/persistence/dir"
)

// Disk is a file system that can be full: then nothing can be written.
type Disk struct {
	Full  atomic.Bool
	Syncs atomic.Int64               // begun
	Gate  atomic.Pointer[chan error] // each sync takes its outcome from there; nil: they succeed
}

type diskFile struct {
	*os.File
	disk *Disk
}

func (f diskFile) Write(p []byte) (int, error) {
	if f.disk.Full.Load() {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f diskFile) Sync() error {
	f.disk.Syncs.Add(1)
	if gate := f.disk.Gate.Load(); gate != nil {
		return <-*gate
	}
	return nil
}

// Holds keeps what do writes from the disk, and fails the test where the peer is answered before it is there.
func (d *Disk) Holds(c Client, do func()) {
	c.T.Helper()
	gate := make(chan error)
	d.Gate.Store(&gate)
	syncs := d.Syncs.Load()
	do()
	celldtest.Eventually(c.T, "write", func() bool { return d.Syncs.Load() > syncs })
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // more than it takes where it is answered
	if got, err := c.Peek(1); err == nil {
		c.T.Errorf("%q was answered before it was written", got)
	}
	_ = c.SetReadDeadline(time.Now().Add(Patience))
	d.Gate.Store(nil)
	close(gate)
}

func (diskFile) Forget(int64, int64) {}

func (d *Disk) open(name string, flags int) (dir.File, error) {
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f, d}, nil
}

func (d *Disk) Open(name string) (dir.File, error) { return d.open(name, os.O_RDONLY) }
func (d *Disk) Create(name string) (dir.File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}
func (d *Disk) Append(name string) (dir.File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_APPEND)
}
func (d *Disk) Rename(from, to string) error         { return os.Rename(from, to) }
func (d *Disk) Remove(name string) error             { return os.Remove(name) }
func (d *Disk) Lock(name string) (dir.File, error)   { return d.Append(name) }
func (d *Disk) Names(string, dir.File) (bool, error) { return true, nil }
func (d *Disk) List(string) ([]string, error)        { return nil, nil }
