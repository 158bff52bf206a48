package persistence_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/persistence"
	"celld/persistence/dir"
	"celld/store"
	"celld/store/memory"
)

// t0 is the instant at which most tests begin: 2023-11-14 22:13:20 UTC.
const (
	t0     int64 = 1_700_000_000_000_000_000
	second int64 = 1_000_000_000
)

// world is a store and its files, and a clock that is set by hand.
type world struct {
	t     testing.TB
	dir   string
	now   int64        // changed only by pass, but while nothing is open
	clock atomic.Int64 // what the Disk sees of it
	store *memory.Store
	m     *persistence.Disk
	log   *logText
	files dir.FileSystem
	set   func(*persistence.Options)
	room  memory.Options // the zero value has room for all

	between    func()                 // what is done between Load and Start; nil: nothing
	background func(step func() bool) // nil: at once
	rest       func(do func()) bool   // does something between transactions; nil: there are none

	acked map[string]store.Value // as change saw them written
}

// logText is what was logged.
type logText struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}

func newWorld(t testing.TB, set func(*persistence.Options)) *world {
	return &world{t: t, dir: t.TempDir(), now: t0, set: set}
}

func appendOnly(o *persistence.Options) { o.AppendOnly = true }
func always(o *persistence.Options)     { o.AppendOnly, o.Fsync = true, persistence.Always }
func snapshots(o *persistence.Options) {
	o.SavePoints = func() []persistence.SavePoint { return []persistence.SavePoint{{After: time.Hour, Changes: 1}} }
}

// open starts on what is on the disk. A process that was there before is dead.
func (w *world) open() error {
	if w.m != nil {
		w.m.Release()
	}
	w.log = &logText{}
	w.pass(0)
	o := persistence.Options{
		Dir: w.dir, DBFilename: "dump.rdb", AppendFilename: "appendonly.aof", LoadTruncated: true,
		SavePoints:        func() []persistence.SavePoint { return nil },
		RewritePercentage: func() int64 { return 0 },
		RewriteMinSize:    func() int64 { return 0 },
		Clock:             w.clock.Load,
		Log:               slog.New(slog.NewTextHandler(w.log, nil)),
		Files:             w.files,
	}
	w.set(&o)
	w.room.Journal = o.AppendOnly
	w.store = memory.New(w.room)
	w.m = persistence.New(w.store, o)
	_, err := w.m.Load(func(args [][]byte) error { return fmt.Errorf("unknown command %q", args[0]) })
	if err == nil && w.between != nil {
		w.between()
	}
	if err == nil {
		background := w.background
		if background == nil {
			background = func(step func() bool) {
				for step() {
				}
			}
		}
		err = w.m.Start(background, w.rest)
	}
	return err
}

// crashed is the next process, as if this one were no more.
func (w *world) crashed() *world {
	w.t.Helper()
	w.m.Release()
	next := newWorld(w.t, w.set)
	next.dir, next.now = w.dir, w.now
	next.mustOpen().m.Release()
	return next
}

func (w *world) mustOpen() *world {
	w.t.Helper()
	if err := w.open(); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// close does what a server does when it is told to stop.
func (w *world) close() error {
	w.m.Stop()
	return w.m.Close(w.m.SaveAtExit())
}

// reopen stops and starts again.
func (w *world) reopen() *world {
	w.t.Helper()
	if err := w.close(); err != nil {
		w.t.Fatal(err)
	}
	return w.mustOpen()
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) read(name string) string {
	text, err := os.ReadFile(w.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) write(name, text string) {
	if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(key string, st store.Value) {
	w.t.Helper()
	err := w.store.Update([]byte(key), store.Access{NowNS: w.now}, func(store.Value, bool) (store.Value, bool) {
		return st, true
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// throttle is 5 at once and then one a second.
func (w *world) throttle(key string) (limited bool) {
	limit, err := cell.NewBucket(4, 1, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := w.store.Throttle([]byte(key), limit, 1, store.Access{NowNS: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	return d.Limited
}

// states are all keys that the store has, without what they hold where that is limits: texts has that.
func (w *world) states() map[string]store.Value {
	all := map[string]store.Value{}
	for at, more := (memory.Position{}), true; more; {
		at, more = w.store.Export(at, w.now, func(key []byte, st store.Value) {
			st.Limits = nil
			all[string(key)] = st
		})
	}
	return all
}

func (w *world) expect(want map[string]store.Value) {
	w.t.Helper()
	if got := w.states(); !maps.Equal(got, want) {
		w.t.Errorf("the store has %v, want %v", got, want)
	}
}

// tick advances the clock by so much, and does what is due.
func (w *world) tick(ns int64) {
	w.pass(ns)
	w.m.Tick()
}

func (w *world) pass(ns int64) {
	w.now += ns
	w.clock.Store(w.now)
}

// commit writes all changes to the disk, or says that it could not.
func (w *world) commit() error {
	w.m.Begin()
	return w.m.Commit()
}

// mustWrite writes all changes to the file, a second later.
func (w *world) mustWrite() {
	w.t.Helper()
	if w.m.Synchronous() {
		if err := w.commit(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.tick(second)
	w.settle()
}

// settle waits for the work in the background.
func (w *world) settle() {
	w.t.Helper()
	for deadline := time.Now().Add(celldtest.Patience); ; time.Sleep(time.Millisecond) {
		st := w.m.Status()
		if !st.Saving && !st.Rewriting && (st.AOFPending == 0 || st.AOFErr != nil) && !w.m.Writing() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not written: %+v", st)
		}
	}
}

// rewriteWhile advances the clock and rewrites the append-only file over and over until the others are done. Then it settles.
func (w *world) rewriteWhile(others *sync.WaitGroup) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		others.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			w.settle()
			return
		case <-time.After(time.Millisecond):
			w.tick(second / 2)
			_ = w.m.Rewrite()
		}
	}
}

// did is the answer to those who may do everything.
func did(done bool, err error) bool {
	if err != nil {
		panic(err)
	}
	return done
}
