package persistence

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"celld/store"
)

// Disk writes a store's limits to disk and reads them back. Its methods may be called from any goroutine.
//
// The order of its life: New, Load, Start, and then Tick every 100 ms and the others as needed; Stop, and Close.
type Disk struct {
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
	lock           dirLock
	watching       every
	astray         atomic.Pointer[astray] // nil: what was written is in its place
	work           sync.WaitGroup         // saves and rewrites under way

	telling   sync.Mutex
	onRefusal func(refused bool) // nil: nobody asks; guarded by telling

	exit func(code int) // os.Exit, but in tests

	loading struct {
		beganNS     atomic.Int64 // 0: not loading
		done, total atomic.Int64 // bytes
	}

	mu     sync.Mutex
	status Status
	marked int64 // the store's count of changes at the last snapshot

	snapshot struct {
		known bool // one was taken or loaded
		gone  bool // and somebody else has removed it
	}
}

// Status is what INFO and LASTSAVE tell.
type Status struct {
	LastSaveNS       int64 // of the last good snapshot, or of the start
	ChangesSince     int64 // since then
	Saving           bool
	SaveScheduled    bool
	SaveBeganNS      int64
	SaveTookNS       int64 // the last one; -1: none yet
	SaveErr          error // of the last one
	Saves            int64
	Rewriting        bool
	RewriteScheduled bool
	RewriteBeganNS   int64
	RewriteTookNS    int64 // -1: none yet
	RewriteErr       error
	Rewrites         int64

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

// New returns the Disk of a store, which must have a journal if o.AppendOnly.
func New(s *store.Store, o Options) *Disk {
	d := &Disk{o: o, store: s, files: o.Files, log: o.Log, watching: every{period: watchEvery}, exit: os.Exit}
	d.background = func(step func() (more bool)) {
		for step() {
		}
	}
	if d.files == nil {
		d.files = system{}
	}
	d.unsynced.Store(o.Fsync == Never)
	if o.AppendOnly {
		d.aof = newAppendLog(d)
	}
	d.status.SaveTookNS, d.status.RewriteTookNS = -1, -1
	d.status.LastSaveNS = o.Clock()
	return d
}

func (d *Disk) dir() string     { return filepath.Clean(d.o.Dir) } // "." where none is given
func (d *Disk) rdbPath() string { return filepath.Join(d.o.Dir, d.o.DBFilename) }
func (d *Disk) aofPath() string { return filepath.Join(d.o.Dir, d.o.AppendFilename) }

// manifestPath is where Redis 7 lists its append-only files.
func (d *Disk) manifestPath() string {
	return filepath.Join(d.o.Dir, "appendonlydir", d.o.AppendFilename+".manifest")
}

// On says whether anything is written: an append-only file, or snapshots.
func (d *Disk) On() bool { return d.o.AppendOnly || len(d.o.SavePoints()) > 0 }

// Start begins to write. background has a function run over and over, until it returns false, in between what holds the
// store's locks otherwise.
func (d *Disk) Start(background func(step func() (more bool))) error {
	defer d.loading.beganNS.Store(0)
	d.background = background
	d.mu.Lock()
	d.marked = d.store.Stats(d.o.Clock()).Changes
	d.mu.Unlock()
	if !d.On() {
		return nil
	}
	if err := d.checkDir(); err != nil {
		return err
	}
	d.removeLeft()
	if d.aof == nil {
		return nil
	}
	return d.aof.open()
}

// Tick does what is due. It is called every 100 ms.
func (d *Disk) Tick() {
	nowNS := d.o.Clock()
	if d.watching.due(nowNS) {
		d.watch()
	}
	if d.aof != nil {
		d.aof.tick(nowNS)
	}
	if d.rewriteDue() {
		_ = d.Rewrite()
	}
	if d.saveDue(nowNS) {
		_ = d.BackgroundSave(false)
	}
}

func (d *Disk) wallNS() int64 { return d.store.WallNS(d.o.Clock()) }

// WallSet has the files written anew, as the wall clock was set: what they say of limits is in the wall time before. A crash
// before that is done, within seconds, leaves limits as a clock does that is set while nobody runs.
func (d *Disk) WallSet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := &d.status
	if d.aof != nil {
		d.aof.lost.Store(true)
	}
	st.RewriteScheduled = st.RewriteScheduled || st.Rewriting
	st.SaveScheduled = st.SaveScheduled || st.Saving || len(d.o.SavePoints()) > 0
}

// Status returns a copy of it.
func (d *Disk) Status() Status {
	changes := d.store.Stats(d.o.Clock()).Changes
	d.mu.Lock()
	st := d.status
	st.ChangesSince = changes - d.marked
	d.mu.Unlock()
	if d.aof != nil {
		d.aof.fill(&st)
	}
	return st
}

// Stop ends what goes on in the background. The store may still change; Close is what writes the last changes.
func (d *Disk) Stop() {
	d.mu.Lock() // under which what is waited for is begun
	d.stopping.Store(true)
	d.mu.Unlock()
	d.work.Wait()
}

// Close writes what has changed to the append-only file, and a snapshot if save says so. Nobody may use the store any more.
func (d *Disk) Close(save bool) error {
	defer d.lock.release()
	var err error
	if d.aof != nil && d.aof.active.Load() {
		d.watch()
		err = d.aof.close()
		if d.aof.lost.Load() || d.astray.Load() != nil {
			err = d.rewriteWhole(true) // which has all
		}
	}
	if save {
		err = errors.Join(err, d.Save())
	}
	return err
}

// SaveAtExit says whether a server that is told to stop and not how takes a snapshot: if it takes any.
func (d *Disk) SaveAtExit() bool { return len(d.o.SavePoints()) > 0 }

// inSteps runs a function in the background until it returns false, and waits for that.
func (d *Disk) inSteps(step func() (more bool)) {
	done := make(chan struct{})
	d.background(func() (more bool) {
		if d.stopping.Load() || !step() {
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
func (d *Disk) export(direct bool, add func(key []byte, st store.Value) (enough bool), flush func() error) error {
	at, more := d.store.StartExport(), true
	defer d.store.EndExport(at)
	var enough bool
	step := func() bool {
		at, more = d.store.Export(at, d.o.Clock(), func(key []byte, st store.Value) { enough = add(key, st) })
		return more && !enough
	}
	for more {
		if enough = false; direct {
			for step() {
			}
		} else {
			d.inSteps(step)
			if d.stopping.Load() {
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
