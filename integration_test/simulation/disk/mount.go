package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"celld/persistence/dir"
)

// Mount is the disk as one process sees it. It implements dir.FileSystem.
type Mount struct {
	disk *Disk
	dead atomic.Bool
}

// Mount returns the disk for a new process.
func (d *Disk) Mount() *Mount { return &Mount{disk: d} }

// Unmount ends the process's access and its locks: it was killed. It may go on to ask, and gets errors.
func (m *Mount) Unmount() {
	m.dead.Store(true)
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for name, owner := range m.disk.locks {
		if owner == m {
			delete(m.disk.locks, name)
		}
	}
}

// do runs an operation that takes a while, in whose middle the process may be killed.
func (m *Mount) do(op Op, name string, work func() error) error {
	d := m.disk
	took := time.Duration(0)
	if d.Takes != nil {
		took = d.Takes(op)
		time.Sleep(took / 2)
	}
	err := m.done(op, name, work)
	if took > 0 {
		time.Sleep(took - took/2)
	}
	return err
}

func (m *Mount) done(op Op, name string, work func() error) error {
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	switch {
	case m.dead.Load():
		err = fs.ErrClosed
	case d.fail != nil:
		err = d.fail(op, name)
	}
	if err == nil {
		err = work()
	}
	if err != nil {
		return &fs.PathError{Op: string(op), Path: name, Err: err}
	}
	return nil
}

func (m *Mount) open(op Op, name string, create, truncate bool) (f *handle, err error) {
	name = filepath.Clean(name)
	err = m.do(op, name, func() error {
		file := m.disk.names[name]
		switch {
		case file == nil && !create:
			return fs.ErrNotExist
		case file == nil:
			file = &inode{}
			m.disk.name(name, file)
		case truncate && len(file.cache) > 0:
			file.change(change{size: 0})
		}
		f = &handle{mount: m, name: name, file: file, appends: op == Append}
		return nil
	})
	return f, err
}

func (i *inode) change(c change) {
	i.cache = c.apply(i.cache)
	i.unsynced = append(i.unsynced, c)
}

func opened(f *handle, err error) (dir.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (m *Mount) Open(name string) (dir.File, error) { return opened(m.open(Open, name, false, false)) }
func (m *Mount) Create(name string) (dir.File, error) {
	return opened(m.open(Create, name, true, true))
}
func (m *Mount) Append(name string) (dir.File, error) {
	f, err := m.open(Append, name, false, false)
	if !errors.Is(err, fs.ErrNotExist) {
		return opened(f, err)
	}
	if f, err = m.open(Append, name, true, false); err != nil {
		return nil, err
	}
	if err := m.syncDir(f.name); err != nil {
		return nil, err
	}
	return f, nil
}

// syncDir puts the names on the platter.
func (m *Mount) syncDir(name string) error {
	return m.do(SyncDir, filepath.Dir(name), func() error { m.disk.syncNames(); return nil })
}

func (m *Mount) Rename(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	err := m.do(Rename, from, func() error {
		file := m.disk.names[from]
		if file == nil {
			return fs.ErrNotExist
		}
		m.disk.name(to, file)
		m.disk.name(from, nil)
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.syncDir(to); err != nil {
		return fmt.Errorf("%w: %w", dir.ErrNotLasting, err)
	}
	return nil
}

func (m *Mount) Remove(name string) error {
	name = filepath.Clean(name)
	return m.do(Remove, name, func() error {
		if m.disk.names[name] == nil {
			return fs.ErrNotExist
		}
		m.disk.name(name, nil)
		return nil
	})
}

func (m *Mount) List(dir string) (names []string, err error) {
	err = m.do(Read, dir, func() error { names = m.disk.list(dir); return nil })
	return names, err
}

func (m *Mount) Lock(name string) (dir.File, error) {
	f, err := m.open(Lock, name, true, false)
	if err != nil {
		return nil, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if owner := d.locks[f.name]; owner != nil && owner != m {
		return nil, dir.ErrInUse
	}
	d.locks[f.name], f.locks = m, true
	return f, nil
}

func (m *Mount) Names(name string, f dir.File) (same bool, err error) {
	name = filepath.Clean(name)
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	err = m.do(Read, name, func() error { same = m.disk.names[name] == open.Sys(); return nil })
	return same, err
}

// handle is an open file.
type handle struct {
	mount   *Mount
	name    string
	file    *inode
	at      int
	appends bool
	locks   bool
	closed  bool
}

func (h *handle) do(op Op, work func() error) error {
	return h.mount.do(op, h.name, func() error {
		if h.closed {
			return os.ErrClosed
		}
		return work()
	})
}

func (h *handle) Read(b []byte) (n int, err error) {
	n, err = h.ReadAt(b, int64(h.at))
	h.at += n
	if n > 0 {
		err = nil
	}
	return n, err
}

func (h *handle) ReadAt(b []byte, at int64) (n int, err error) {
	end := false
	err = h.do(Read, func() error {
		if at < int64(len(h.file.cache)) {
			n = copy(b, h.file.cache[at:])
		}
		end = n < len(b)
		return nil
	})
	if err == nil && end {
		err = io.EOF
	}
	return n, err
}

// Write may write a part before it fails, as with a full disk.
func (h *handle) Write(b []byte) (n int, err error) {
	write := func(b []byte) {
		if h.appends {
			h.at = len(h.file.cache)
		}
		if len(b) > 0 {
			h.file.change(change{at: h.at, bytes: append([]byte(nil), b...), size: -1})
		}
		h.at += len(b)
		n = len(b)
	}
	err = h.do(Write, func() error { write(b); return nil })
	d := h.mount.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && !h.mount.dead.Load() && !h.closed {
		write(b[:d.rnd.IntN(len(b)+1)])
	}
	return n, err
}

// Sync that fails leaves some of what was written before it in the cache for good, as Linux does: it counts as clean, and no later sync
// writes it.
func (h *handle) Sync() error {
	err := h.do(Sync, func() error {
		for _, c := range h.file.unsynced {
			if !c.clean {
				h.file.platter = c.apply(h.file.platter)
			}
		}
		h.file.unsynced = nil
		return nil
	})
	d := h.mount.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && !h.mount.dead.Load() {
		for i := range h.file.unsynced {
			h.file.unsynced[i].clean = h.file.unsynced[i].clean || d.rnd.IntN(2) == 0
		}
	}
	return err
}

func (h *handle) Truncate(size int64) error {
	if size < 0 || size > math.MaxInt32 {
		return fs.ErrInvalid
	}
	return h.do(Truncate, func() error { h.file.change(change{size: int(size)}); return nil })
}

func (h *handle) Stat() (os.FileInfo, error) {
	d := h.mount.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.mount.dead.Load() {
		return nil, fs.ErrClosed
	}
	return info{h.name, int64(len(h.file.cache)), h.file}, nil
}

func (h *handle) Close() error {
	d := h.mount.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.closed {
		return os.ErrClosed
	}
	h.closed = true
	if h.locks && d.locks[h.name] == h.mount {
		delete(d.locks, h.name)
	}
	return nil
}

func (h *handle) Forget(int64, int64) {}
