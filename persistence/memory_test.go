package persistence_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"celld/persistence/dir"
)

// memoryFS is a file system that can be told to fail, and that knows what would be left of it if the power went.
type memoryFS struct {
	mu    sync.Mutex
	files map[string]*memoryFile

	forgotten int64 // bytes, by Forget
	noLocks   bool  // it has none
	most      int   // bytes that a file may have; 0: no limit

	// fail is asked before each call, and for a Rename also behind it (as "renamed": that the directory is synced). A write
	// that fails has written half.
	fail func(call, name string) error
}

type memoryFile struct {
	data, synced []byte
	locked       bool
}

func newMemory() *memoryFS { return &memoryFS{files: map[string]*memoryFile{}} }

// allowed asks fail, without the lock, so that fail may use the Disk.
func (m *memoryFS) allowed(call, name string) error {
	m.mu.Lock()
	fail := m.fail
	m.mu.Unlock()
	if fail == nil {
		return nil
	}
	if err := fail(call, filepath.Base(name)); err != nil {
		return &fs.PathError{Op: call, Path: name, Err: err}
	}
	return nil
}

// failing sets the function by which calls fail; nil: none.
func (m *memoryFS) failing(fail func(call, name string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

// during runs do at the first call of that name for a temporary file, and tells whether it has come to that.
func (m *memoryFS) during(call string, do func()) (done *atomic.Bool) {
	done = new(atomic.Bool)
	m.failing(func(kind, name string) error {
		if kind == call && strings.HasPrefix(name, "temp") && done.CompareAndSwap(false, true) {
			do()
		}
		return nil
	})
	return done
}

// failFrom fails the call of that number, counted from now, and with forever all that follow. It leaves out calls that look for a
// file, as they need no room. The function that it returns reports whether the call was reached.
func (m *memoryFS) failFrom(call int, forever bool) (failed func() bool) {
	var mu sync.Mutex
	n := 0
	m.failing(func(kind, _ string) error {
		if kind == "open" || kind == "names" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if n++; n == call || forever && n > call {
			return syscall.ENOSPC
		}
		return nil
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return n >= call
	}
}

// failOn is for failing: these calls fail.
func failOn(calls ...string) func(call, name string) error {
	return func(call, _ string) error {
		if slices.Contains(calls, call) {
			return syscall.ENOSPC
		}
		return nil
	}
}

// image is a copy as it would be found by the next process. After a loss of power only what was synced is there.
func (m *memoryFS) image(powerLost bool) *memoryFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	image := newMemory()
	for name, f := range m.files {
		data := f.data
		if powerLost {
			data = f.synced
		}
		image.files[name] = &memoryFile{data: slices.Clip(data), synced: slices.Clip(data)}
	}
	return image
}

// put writes a file with that text.
func (m *memoryFS) put(name string, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = &memoryFile{data: slices.Clone(text), synced: slices.Clone(text)}
}

// shorten cuts a file off, also for those who have it open.
func (m *memoryFS) shorten(name string, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name].data = m.files[name].data[:size]
}

// cutAt is shorten, where there is such a file and it is longer.
func (m *memoryFS) cutAt(name string, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[name]; f != nil {
		f.data = f.data[:min(size, len(f.data))]
	}
}

// text is what a file has.
func (m *memoryFS) text(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[name]; f != nil {
		return string(f.data)
	}
	return ""
}

// list is the names of all files but that of the lock, without their directory.
func (m *memoryFS) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.files {
		if base := filepath.Base(name); base != lockName {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names
}

func (m *memoryFS) open(call, name string, create, empty bool) (dir.File, error) {
	if err := m.allowed(call, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[name]
	if f == nil && !create {
		return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrNotExist}
	}
	if f == nil || empty { // open files keep their content, unlike on a disk, but nobody relies on that
		f = &memoryFile{}
		m.files[name] = f
	}
	return &memoryHandle{m: m, f: f, name: name, writes: create}, nil
}

func (m *memoryFS) Open(name string) (dir.File, error) {
	return m.open("open", name, false, false)
}

func (m *memoryFS) Create(name string) (dir.File, error) {
	return m.open("create", name, true, true)
}

func (m *memoryFS) Append(name string) (dir.File, error) {
	return m.open("append", name, true, false)
}

func (m *memoryFS) Rename(from, to string) error {
	if err := m.allowed("rename", to); err != nil {
		return err
	}
	m.mu.Lock()
	f := m.files[from]
	if f == nil {
		m.mu.Unlock()
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	delete(m.files, from)
	m.files[to] = f
	m.mu.Unlock()
	if err := m.allowed("renamed", to); err != nil {
		return fmt.Errorf("%w: %w", dir.ErrNotLasting, err)
	}
	return nil
}

func (m *memoryFS) Remove(name string) error {
	if err := m.allowed("remove", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(m.files, name)
	return nil
}

const lockName = "celld.lock"

func (m *memoryFS) Lock(name string) (dir.File, error) {
	f, err := m.open("lock", name, true, false)
	if err != nil {
		return nil, err
	}
	h := f.(*memoryHandle)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noLocks {
		return h, dir.ErrNoLocks
	}
	if h.f.locked {
		return nil, dir.ErrInUse
	}
	h.f.locked, h.locks = true, true
	return h, nil
}

func (m *memoryFS) Names(name string, f dir.File) (bool, error) {
	if err := m.allowed("names", name); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, ok := f.(*dir.Paced); ok {
		f = p.File
	}
	return m.files[name] == f.(*memoryHandle).f, nil
}

func (m *memoryFS) List(dir string) ([]string, error) {
	if err := m.allowed("list", dir); err != nil {
		return nil, err
	}
	return m.list(), nil
}

// memoryHandle is an open file; it writes at the end.
type memoryHandle struct {
	m    *memoryFS
	f    *memoryFile
	name string
	read int

	writes bool

	locks bool // until it is closed
}

func (h *memoryHandle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, int64(h.read))
	h.read += n
	if n > 0 {
		err = nil
	}
	return n, err
}

func (h *memoryHandle) ReadAt(p []byte, at int64) (int, error) {
	if err := h.m.allowed("read", h.name); err != nil {
		return 0, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	n := copy(p, h.f.data[min(int(at), len(h.f.data)):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memoryHandle) Write(p []byte) (int, error) {
	err := h.m.allowed("write", h.name)
	if err != nil {
		p = p[:len(p)/2]
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if fits := h.m.most - len(h.f.data); h.m.most > 0 && fits < len(p) {
		p, err = p[:max(fits, 0)], &fs.PathError{Op: "write", Path: h.name, Err: syscall.ENOSPC}
	}
	h.f.data = append(h.f.data, p...)
	return len(p), err
}

func (h *memoryHandle) Sync() error {
	if err := h.m.allowed("sync", h.name); err != nil {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.f.synced = slices.Clip(h.f.data) // which grows at its end, or is replaced
	return nil
}

// Forget must not name bytes that are not on the disk yet, except by one who has only read them: the kernel keeps those.
func (h *memoryHandle) Forget(at, n int64) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if n < 0 || h.writes && at+n > int64(len(h.f.synced)) {
		panic(fmt.Sprintf("%s: %d bytes from %d on are to be forgotten, and %d are on the disk", h.name, n, at, len(h.f.synced)))
	}
	h.m.forgotten += n
}

func (h *memoryHandle) Truncate(size int64) error {
	if err := h.m.allowed("truncate", h.name); err != nil {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	data := make([]byte, size) // a file that is made longer has zeros there
	copy(data, h.f.data)
	h.f.data = data
	return nil
}

func (h *memoryHandle) Stat() (os.FileInfo, error) {
	if err := h.m.allowed("stat", h.name); err != nil {
		return nil, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return memoryInfo{filepath.Base(h.name), int64(len(h.f.data))}, nil
}

func (h *memoryHandle) Close() error {
	if h.locks {
		h.m.mu.Lock()
		defer h.m.mu.Unlock()
		h.f.locked = false
		return nil
	}
	return h.m.allowed("close", h.name)
}

type memoryInfo struct {
	name string
	size int64
}

func (i memoryInfo) Name() string     { return i.name }
func (i memoryInfo) Size() int64      { return i.size }
func (memoryInfo) Mode() fs.FileMode  { return 0o644 }
func (memoryInfo) ModTime() time.Time { return time.Time{} }
func (memoryInfo) IsDir() bool        { return false }
func (memoryInfo) Sys() any           { return nil }
