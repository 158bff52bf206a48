package persistence

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"celld/store"
)

// Manager writes a store's limits to disk and reads them back. Its methods may be called from any goroutine.
//
// The order of its life: New, Load, Start, and then Tick every 100 ms and the others as needed; Stop, and Close.
type Manager struct {
	o     Options
	store *store.Store
	files FileSystem
	log   *slog.Logger
	aof   *appendLog // nil: off

	tailCRC        uint64      // of what follows the last stamp in the append-only file that was loaded
	rewriteAtStart bool        // what was loaded is not an append-only file that can be extended
	unsynced       atomic.Bool // the file's bytes get to the disk when the system sees fit; not with Always
	background     func(step func() (more bool))
	stopping       atomic.Bool
	work           sync.WaitGroup // saves and rewrites under way

	loading struct {
		beganNS     atomic.Int64 // 0: not loading
		done, total atomic.Int64 // bytes
	}

	mu     sync.Mutex
	status Status
	marked int64 // the store's count of changes at the last snapshot
}

// Status is what INFO and LASTSAVE tell.
type Status struct {
	LastSaveNS     int64 // of the last good snapshot, or of the start
	ChangesSince   int64 // since then
	Saving         bool
	SaveScheduled  bool
	SaveBeganNS    int64
	SaveTookNS     int64 // the last one; -1: none yet
	SaveErr        error // of the last one
	Saves          int64
	Rewriting      bool
	RewritePlanned bool
	RewriteBeganNS int64
	RewriteTookNS  int64 // -1: none yet
	RewriteErr     error
	Rewrites       int64

	AOF         bool
	AOFSize     int64
	AOFBaseSize int64
	AOFPending  int64 // bytes gathered and not written
	AOFErr      error // of the last write
	AOFFailures int64 // writes that have failed
	Loaded      Loaded
}

// Why a snapshot or a rewrite was not begun.
var (
	ErrSaving    = errors.New("a snapshot is being taken")
	ErrRewriting = errors.New("the append-only file is being rewritten")
)

// New returns a manager of a store, which must have a journal if o.AppendOnly.
func New(s *store.Store, o Options) *Manager {
	m := &Manager{o: o, store: s, files: o.Files, log: o.Log}
	m.background = func(step func() (more bool)) {
		for step() {
		}
	}
	if m.files == nil {
		m.files = system{}
	}
	m.unsynced.Store(o.Fsync == Never)
	if o.AppendOnly {
		m.aof = newAppendLog(m)
	}
	m.status.SaveTookNS, m.status.RewriteTookNS = -1, -1
	m.status.LastSaveNS = o.Clock()
	return m
}

func (m *Manager) dir() string     { return filepath.Clean(m.o.Dir) } // "." where none is given
func (m *Manager) rdbPath() string { return filepath.Join(m.o.Dir, m.o.DBFilename) }
func (m *Manager) aofPath() string { return filepath.Join(m.o.Dir, m.o.AppendFilename) }

// manifestPath is where Redis 7 lists its append-only files.
func (m *Manager) manifestPath() string {
	return filepath.Join(m.o.Dir, "appendonlydir", m.o.AppendFilename+".manifest")
}

// create makes an empty file to write much to.
func (m *Manager) create(name string) (File, error) {
	f, err := m.files.Create(name)
	if err != nil {
		return nil, err
	}
	return &paced{File: f}, nil
}

// On says whether anything is written: an append-only file, or snapshots.
func (m *Manager) On() bool { return m.o.AppendOnly || len(m.o.SavePoints()) > 0 }

// Start begins to write. background has a function run over and over, until it returns false, in between what holds the
// store's locks otherwise.
func (m *Manager) Start(background func(step func() (more bool))) error {
	defer m.loading.beganNS.Store(0)
	m.background = background
	m.mu.Lock()
	m.marked = m.store.Stats(m.o.Clock()).Changes
	m.mu.Unlock()
	if !m.On() {
		return nil
	}
	if err := m.checkDir(); err != nil {
		return err
	}
	m.removeLeft()
	if m.aof == nil {
		return nil
	}
	return m.aof.open()
}

// Tick does what is due. It is called every 100 ms.
func (m *Manager) Tick() {
	nowNS := m.o.Clock()
	if m.aof != nil {
		m.aof.tick(nowNS)
	}
	if m.rewriteDue() {
		_ = m.Rewrite()
	}
	if m.saveDue(nowNS) {
		_ = m.BackgroundSave(false)
	}
}

// Status returns a copy of it.
func (m *Manager) Status() Status {
	changes := m.store.Stats(m.o.Clock()).Changes
	m.mu.Lock()
	st := m.status
	st.ChangesSince = changes - m.marked
	m.mu.Unlock()
	if m.aof != nil {
		m.aof.fill(&st)
	}
	return st
}

// Stop ends what goes on in the background. The store may still change; Close is what writes the last changes.
func (m *Manager) Stop() {
	m.mu.Lock() // under which what is waited for is begun
	m.stopping.Store(true)
	m.mu.Unlock()
	m.work.Wait()
}

// Close writes what has changed to the append-only file, and a snapshot if save says so. Nobody may use the store any more.
func (m *Manager) Close(save bool) error {
	var err error
	if m.aof != nil && m.aof.active.Load() {
		err = m.aof.close()
		if m.aof.lost.Load() {
			err = m.rewriteDirect() // which has all
		}
	}
	if save {
		err = errors.Join(err, m.Save())
	}
	return err
}

// SaveAtExit says whether a server that is told to stop and not how takes a snapshot: if it takes any.
func (m *Manager) SaveAtExit() bool { return len(m.o.SavePoints()) > 0 }

// inSteps runs a function in the background until it returns false, and waits for that.
func (m *Manager) inSteps(step func() (more bool)) {
	done := make(chan struct{})
	m.background(func() (more bool) {
		if m.stopping.Load() || !step() {
			close(done)
			return false
		}
		return true
	})
	<-done
}

// ErrStopping is why something was broken off.
var ErrStopping = errors.New("the server is stopping")

// export gives all limits to add, in pieces small enough to be written in between: flush is called outside of any lock
// when add has said that there is enough for it, and at the end. direct is for where nobody is held up by it.
func (m *Manager) export(direct bool, add func(key []byte, st store.State) (enough bool), flush func() error) error {
	at, more := m.store.StartExport(), true
	defer m.store.EndExport(at)
	var enough bool
	step := func() bool {
		at, more = m.store.Export(at, m.o.Clock(), func(key []byte, st store.State) { enough = add(key, st) })
		return more && !enough
	}
	for more {
		if enough = false; direct {
			for step() {
			}
		} else {
			m.inSteps(step)
			if m.stopping.Load() {
				return ErrStopping
			}
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

// every reports, at most once in a time, that it is time again.
type every struct {
	period time.Duration
	lastNS int64
}

func (e *every) due(nowNS int64) bool {
	if nowNS-e.lastNS < int64(e.period) {
		return false
	}
	e.lastNS = nowNS
	return true
}
