// Package disk is a simulated disk, which loses what was not synced when the power goes:
//
//	d := disk.New(rnd)
//	files := d.Mount()    // a dir.FileSystem for one process
//	files.Unmount()       // the process was killed: what it wrote is still there
//	d.LosePower()         // what was not synced is lost, torn, or there
//	d.SetFail(func(op disk.Op, name string) error { return syscall.ENOSPC })
//
// A write is in the page cache at once. Sync puts the writes of one file on the platter, and Rename the names of the directory, as POSIX
// has it: without that, a new file may be gone, or have its old name. After a sync that has failed, the writes before it may never get
// there, as with Linux. All chance comes from the source that New is given.
package disk

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Op is what a process asks of the disk.
type Op string

// The operations that may fail.
const (
	Open     Op = "open"
	Create   Op = "create"
	Append   Op = "append"
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
	Rename   Op = "rename"
	SyncDir  Op = "sync the directory" // the end of a Rename
	Remove   Op = "remove"
	Lock     Op = "lock"
	Read     Op = "read"
)

// Disk is what is stored. Set Takes before it is used.
type Disk struct {
	Takes    func(op Op) time.Duration // nil: nothing takes time
	Reorders bool                      // a loss of power may lose a write and keep a later one, so that zeros are between

	fail func(op Op, name string) error

	mu      sync.Mutex
	rnd     *rand.Rand
	names   map[string]*inode
	platter map[string]*inode // the names as they are after a loss of power
	renamed []naming          // changes of names since the last sync of the directory
	locks   map[string]*Mount
	Lost    int // writes that losses of power have lost, wholly or in part
}

// naming is a change of a name. No file: it was removed.
type naming struct {
	name string
	file *inode
}

// inode is a file's bytes.
type inode struct {
	cache    []byte // as processes read it
	platter  []byte
	unsynced []change
}

// change is a write, or the new size of a file.
type change struct {
	at    int
	bytes []byte
	size  int  // -1: it is a write
	clean bool // a sync has failed, and it never gets to the platter
}

func (c change) apply(to []byte) []byte {
	if c.size >= 0 {
		if c.size <= len(to) {
			return to[:c.size:c.size]
		}
		return append(to, make([]byte, c.size-len(to))...)
	}
	if end := c.at + len(c.bytes); end > len(to) {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.at:], c.bytes)
	return to
}

// New returns an empty disk.
func New(rnd *rand.Rand) *Disk {
	return &Disk{rnd: rnd, names: map[string]*inode{}, platter: map[string]*inode{}, locks: map[string]*Mount{}}
}

// SetFail sets what fails from now on. nil: nothing. A write that fails may have written a part.
func (d *Disk) SetFail(fail func(op Op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

// sector is what a disk writes whole.
const sector = 512

// What becomes of a write that was not synced.
const (
	kept = iota
	torn
	lost
)

// LosePower leaves what is on the platter. Of what was not synced, each write is there, lost, or there in part, and changes of names are
// there up to one of them, as file systems keep them in a journal. Mounts from before are dead.
func (d *Disk) LosePower() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.renamed[:d.rnd.IntN(len(d.renamed)+1)] {
		rename(d.platter, r)
	}
	d.renamed = nil
	clear(d.names)
	files := map[*inode]bool{}
	for _, name := range d.sorted(d.platter) {
		file := d.platter[name]
		d.names[name] = file
		if files[file] {
			continue
		}
		files[file] = true
		for _, c := range file.unsynced {
			what := d.rnd.IntN(3)
			if c.clean {
				what = lost
			}
			if what != kept {
				d.Lost++
			}
			switch whole := len(c.bytes) / sector; {
			case what == torn && whole > 0:
				c.bytes = c.bytes[:sector*d.rnd.IntN(whole+1)]
			case what == torn && c.size < 0: // the size of a file is not a multiple of sectors
				c.bytes = c.bytes[:d.rnd.IntN(len(c.bytes)+1)]
			}
			if what != lost {
				file.platter = c.apply(file.platter)
			}
			if what != kept && !d.Reorders && !c.clean {
				break
			}
		}
		file.unsynced, file.cache = nil, slices.Clone(file.platter)
	}
	clear(d.locks)
}

func rename(names map[string]*inode, r naming) {
	if r.file == nil {
		delete(names, r.name)
		return
	}
	names[r.name] = r.file
}

func (d *Disk) sorted(names map[string]*inode) (list []string) {
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Put puts a file onto the disk that was there before, and is whole.
func (d *Disk) Put(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := &inode{cache: slices.Clone(data), platter: slices.Clone(data)}
	d.names[name], d.platter[name] = file, file
}

// Cut cuts a file off, as an operator does.
func (d *Disk) Cut(name string, size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := d.names[name]
	file.cache = file.cache[:size:size]
	file.platter, file.unsynced = slices.Clone(file.cache), nil
}

// Files returns a copy of what processes read.
func (d *Disk) Files() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := map[string][]byte{}
	for name, file := range d.names {
		files[name] = slices.Clone(file.cache)
	}
	return files
}

// name changes a name. The disk is locked.
func (d *Disk) name(name string, file *inode) {
	n := naming{name, file}
	rename(d.names, n)
	d.renamed = append(d.renamed, n)
}

func (d *Disk) syncNames() {
	for _, r := range d.renamed {
		rename(d.platter, r)
	}
	d.renamed = nil
}

func (d *Disk) list(dir string) (names []string) {
	for _, name := range d.sorted(d.names) {
		if filepath.Dir(name) == filepath.Clean(dir) {
			names = append(names, filepath.Base(name))
		}
	}
	return names
}

// info is what Stat tells.
type info struct {
	name string
	size int64
	file *inode
}

func (i info) Name() string       { return filepath.Base(i.name) }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o644 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return i.file }
