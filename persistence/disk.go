package persistence

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/persistence/aof"
	"celld/persistence/dir"
	"celld/persistence/load"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// Disk writes a store's limits to disk and reads them back. Any goroutine may call its methods.
//
// Call New, Load and Start, in this order. Then call Tick every 100 ms, and the other methods as needed. At the end call Stop
// and Close.
type Disk struct {
	o      Options
	store  *memory.Store
	dir    dir.Dir
	paths  load.Paths
	loader load.Loader
	loaded load.Result
	log    *slog.Logger
	aof    *appendLog // nil: off

	unsynced   atomic.Bool // Never is in force
	background func(step func() (more bool))
	between    func(do func()) (did bool)
	stopping   atomic.Bool
	watching   every
	misplaced  atomic.Pointer[misplaced] // nil: the files are in place
	work       sync.WaitGroup            // snapshots and rewrites under way

	telling   sync.Mutex
	onRefusal func(refused bool) // guarded by telling; may be nil

	exit func(code int)

	mu     sync.Mutex
	status Status
	marked int64 // the store's count of changes at the last snapshot

	snapshot struct {
		known bool // one was taken or loaded
		gone  bool // another process has removed it
	}
}

// Status is what INFO and LASTSAVE tell.
type Status struct {
	LastSaveNS       int64 // Unix nanoseconds of the last good snapshot, or of the start
	ChangesSince     int64 // changes of the store since then
	Saving           bool
	SaveScheduled    bool
	SaveBeganNS      int64
	SaveTookNS       int64 // nanoseconds for the last snapshot; -1: none yet
	SaveErr          error // of the last snapshot; nil: it succeeded
	Saves            int64
	Rewriting        bool
	RewriteScheduled bool
	RewriteBeganNS   int64
	RewriteTookNS    int64 // nanoseconds for the last rewrite; -1: none yet
	RewriteErr       error
	Rewrites         int64

	AOF         bool  // there is an append-only file; false: the next seven are zero
	AOFSize     int64 // bytes
	AOFBaseSize int64 // bytes when it was last rewritten or loaded
	AOFPending  int64 // bytes gathered and not written
	AOFErr      error // why changes do not reach the file; nil: they do
	AOFFailures int64 // writes that have failed
	AOFSyncs    int64 // fsyncs of the file
	AOFSyncNS   int64 // nanoseconds that these took
	Loaded      load.Result
}

// Errors of Save, Rewrite and their variants.
var (
	ErrSaving    = errors.New("a snapshot is being taken")
	ErrRewriting = errors.New("the append-only file is being rewritten")
)

// New returns the Disk of a store. With o.AppendOnly the store must have a journal. New touches no file.
func New(s *memory.Store, o Options) *Disk {
	if o.Files == nil {
		o.Files = dir.System{}
	}
	d := &Disk{o: o, store: s, dir: dir.Dir{Path: o.Dir, FS: o.Files, Log: o.Log}, log: o.Log, watching: every{period: watchEvery},
		exit: o.Exit}
	if d.exit == nil {
		d.exit = os.Exit
	}
	d.background = func(step func() (more bool)) {
		for step() {
		}
	}
	d.between = atAnyTime
	d.paths = load.Paths{Snapshot: d.dir.Join(o.DBFilename), AppendOnly: d.dir.Join(o.AppendFilename),
		Manifest: d.dir.Join(filepath.Join("appendonlydir", o.AppendFilename+".manifest"))}
	d.loader = load.Loader{Dir: &d.dir, Store: s, Paths: d.paths, AppendOnly: o.AppendOnly, Truncated: o.LoadTruncated,
		LockWait: o.LockWait, Clock: o.Clock, Log: o.Log, Stopped: d.stopping.Load}
	d.unsynced.Store(o.Fsync == Never)
	if o.AppendOnly {
		d.aof = newAppendLog(d)
	}
	d.status.SaveTookNS, d.status.RewriteTookNS = -1, -1
	d.status.LastSaveNS = o.Clock()
	return d
}

// Load locks the directory for this process if it will write there, and reads its files into the store: see load.Loader. The error is
// dir.ErrInUse if another process uses the directory, ErrStopping after Stop, or says which file is damaged and how to repair it.
func (d *Disk) Load(apply func(args [][]byte) error) (load.Result, error) {
	d.loader.Lock = d.On()
	found, err := d.loader.Load(apply)
	if err != nil {
		return found, err
	}
	d.loaded = found
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Loaded = found
	d.snapshot.known = slices.Contains(found.Files, d.paths.Snapshot)
	return found, nil
}

// Ignored returns the files that are there though nothing is On, and so are not loaded.
func (d *Disk) Ignored() []string { return d.loader.NotRead("") }

// Loading returns the progress of Load.
func (d *Disk) Loading() load.Progress { return d.loader.Progress() }

// Check says what is wrong with the directory, and with the first bytes of the file that Load would read. It neither writes nor locks:
// another process may use the directory. Call it in place of Load.
func (d *Disk) Check() error {
	if !d.On() {
		return nil
	}
	return d.loader.Check()
}

// Claim locks the directory for this process until Close, or says why it cannot: see dir.Dir.
func (d *Disk) Claim() error { return d.dir.Claim() }

// On reports whether anything is written: an append-only file, or snapshots.
func (d *Disk) On() bool { return d.o.AppendOnly || len(d.o.SavePoints()) > 0 }

// Start begins to write. background must call step until it returns false, at times when the locks that step takes on the store delay
// nobody for long. between must call do while no transaction or script is in its middle, or return false while that takes long; nil: there
// are none. With Always, Begin and Commit take its place. The error says which file or directory cannot be used.
func (d *Disk) Start(background func(step func() (more bool)), between func(do func()) (did bool)) error {
	d.background = background
	if between != nil {
		d.between = between
	}
	d.mu.Lock()
	d.marked = d.store.Stats(d.o.Clock()).Changes
	d.mu.Unlock()
	if !d.On() {
		return nil
	}
	if err := d.dir.CheckWritable(); err != nil {
		return err
	}
	d.dir.RemoveLeft()
	if d.aof == nil {
		return nil
	}
	return d.aof.open()
}

// Tick does what is due. It is called every 100 ms.
func (d *Disk) Tick() {
	nowNS := d.o.Clock()
	if always := d.o.Fsync == Always; d.watching.due(nowNS) && !d.watch(always) { // with Always the file is hardly ever at rest
		d.watching.lastNS = 0 // at the next tick
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

// WallSet rewrites the files after the wall clock was set, as the states in them are in the old wall time. The rewrite
// takes seconds. A crash before its end has the effect of a clock that is set while celld does not run.
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

// Status returns the current status.
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

// Stop ends background work and waits for that. The store may still change; Close writes the last changes.
func (d *Disk) Stop() {
	d.mu.Lock() // background work begins under this lock
	d.stopping.Store(true)
	d.mu.Unlock()
	d.work.Wait()
}

// Close writes the last changes to the append-only file, takes a snapshot if save is set, and unlocks the directory. Nobody may
// use the store any more.
func (d *Disk) Close(save bool) error {
	defer d.dir.Release()
	var err error
	if d.aof != nil && d.aof.active.Load() {
		d.watch(true)
		err = d.aof.close()
		if d.aof.lost.Load() || d.misplaced.Load() != nil {
			err = d.rewriteWhole(true) // writes all changes
		}
	}
	if save {
		err = errors.Join(err, d.Save())
	}
	return err
}

// SaveAtExit reports whether a server takes a snapshot when it stops, unless told otherwise: if there are save points.
func (d *Disk) SaveAtExit() bool { return len(d.o.SavePoints()) > 0 }

func atAnyTime(do func()) (did bool) {
	do()
	return true
}

// inSteps runs step in the background until it returns false, and waits for the end. If the Disk stops before, it returns false.
func (d *Disk) inSteps(step func() (more bool)) (did bool) {
	done := make(chan struct{})
	d.background(func() (more bool) {
		if d.stopping.Load() || !step() {
			close(done)
			return false
		}
		return true
	})
	<-done
	return !d.stopping.Load()
}

// offload starts work on the append-only file, for which Stop waits. When the Disk stops, offload returns false and starts nothing.
func (d *Disk) offload(work func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping.Load() {
		return false
	}
	d.work.Go(func() {
		defer d.endOnPanic("the append-only file")
		work()
	})
	return true
}

// ErrStopping means that Stop has ended the work.
var ErrStopping = load.ErrStopping

// export calls add for each limit. When add returns true, and at the end, export calls flush, without a lock on the store. With direct it
// runs in this goroutine, without pauses for others.
func (d *Disk) export(direct bool, add func(key []byte, st store.Value) (enough bool), flush func() error) error {
	at, more := d.store.StartExport(), true
	defer d.store.EndExport(at)
	var enough bool
	var long []copiedState
	step := func() bool {
		at, more = d.store.Export(at, d.o.Clock(), func(key []byte, st store.Value) {
			if !direct && isLong(st) {
				long, enough = append(long, copyState(key, st)), true
			} else {
				enough = add(key, st) || enough
			}
		})
		return more && !enough
	}
	for more {
		if enough = false; direct {
			for step() {
			}
		} else {
			if !d.inSteps(step) {
				return ErrStopping
			}
		}
		for _, k := range long {
			add(k.key, k.st)
		}
		long = nil
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

// eachSetting calls fn with each setting and its text.
func (d *Disk) eachSetting(fn func(setting policy.Setting, text string)) {
	for kind := range policy.SettingKinds {
		for _, name := range d.store.Settings(kind) {
			setting := policy.Setting{Kind: kind, Name: name}
			if text, ok := d.store.SettingText(setting); ok {
				fn(setting, text)
			}
		}
	}
}

// appendSettingChange writes the new form of a setting. A renewed setting is removed first, or a policy gets only the limits that it keeps:
// so the old states are forgotten, and those of the limits that are kept are not.
func (d *Disk) appendSettingChange(b []byte, c policy.Change) []byte {
	text, ok := d.store.SettingText(c.Setting)
	if c.Renewed || !ok {
		b = aof.AppendSetting(b, c.Setting, cmp.Or(c.Kept, aof.SettingGone))
	}
	if ok {
		b = aof.AppendSetting(b, c.Setting, text)
	}
	return b
}

// every reports when a period has passed.
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
