// Package load reads the files of a directory into a store at the start: celld's own, and Redis's. It does not know when they are written.
//
//	l := &load.Loader{Dir: directory, Store: store, Paths: paths, …}
//	err := l.Check()                    // only looks at the first bytes of what Load would read
//	found, err := l.Load(apply)
package load

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"celld/persistence/dir"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// ErrStopping means that the server was told to stop meanwhile.
var ErrStopping = errors.New("the server is stopping")

// Paths are the paths of the files. Load reads the first of these that exists: the append-only file, what the manifest lists, the snapshot.
type Paths struct {
	Snapshot   string
	AppendOnly string // celld's own, or that of Redis before 7
	Manifest   string // where Redis 7 lists its append-only files
}

// Loader reads the files. Set its fields before it is used.
type Loader struct {
	Dir        *dir.Dir
	Store      *memory.Store
	Paths      Paths
	AppendOnly bool // false: only the snapshot is read
	Truncated  bool // true: Load cuts off an append-only file that ends in the middle of a command; false: it refuses the file
	Lock       bool // Load locks the directory first
	LockWait   time.Duration
	Clock      func() int64 // Unix nanoseconds
	Log        *slog.Logger
	Stopped    func() bool

	progress counts
}

// Result is what Load found.
type Result struct {
	File    string           // path of the last file that was read; "": none
	Files   []string         // paths of all files that were read
	NotRead []string         // paths of files that exist but were ignored, as another one comes first, or they are not On
	Keys    int64            // in the store after loading
	Expired int64            // keys that had expired
	Others  map[string]int64 // keys and commands that are no limits, counted by kind; nil: none
	Took    time.Duration

	TailCRC uint64 // the checksum of what follows the last stamp in the append-only file
	Rewrite bool   // a new append-only file is to be written: there is none, or it cannot be extended, or does not say when a TAT ends
}

// run is one Load: it puts what a file holds into the store.
type run struct {
	*Loader
	nowNS   int64
	result  Result
	savedNS int64 // the latest time in the file, Unix nanoseconds
	db      int
	apply   func(args [][]byte) error

	settings map[policy.Setting]bool // that a file has or removes

	state store.Value
	put   func(store.Value, bool) (store.Value, bool)
}

// Load locks the directory for this process, and reads its files into the store: the append-only file if that is on and exists, otherwise
// the snapshot. apply runs the commands that Load does not know itself, as Redis's own files may contain them. An error of apply only
// counts the command in Others. Meanwhile Progress tells how far Load is.
//
// The error is dir.ErrInUse if another process uses the directory, ErrStopping once Stopped returns true, or says which file is damaged
// and how to repair it.
func (l *Loader) Load(apply func(args [][]byte) error) (Result, error) {
	l.progress.beganNS.Store(l.Clock())
	if l.Lock {
		if err := l.Dir.Wait(l.LockWait, l.Stopped); err != nil {
			if l.Stopped() {
				err = ErrStopping
			}
			return Result{}, err
		}
	}
	var before []policy.Setting // that no file may have yet
	l.Store.DrainSettings(func(c policy.Change) { before = append(before, c.Setting) })
	began := time.Now()
	// Not before the wait: else what another process has written meanwhile would look as if the clock had been set back.
	r := &run{Loader: l, nowNS: l.Clock(), apply: apply, settings: map[policy.Setting]bool{}}
	r.put = func(store.Value, bool) (store.Value, bool) { return r.state, true }
	l.progress.beganNS.Store(r.nowNS)
	stop := l.logProgress()
	err := r.load()
	stop()
	if err != nil {
		return Result{}, err
	}
	if back := r.savedNS - r.nowNS; back > 0 {
		l.Log.Warn("the clock is behind that of the file, so all limits are set back as much", "file", r.result.File,
			"by", time.Duration(back))
		l.setBack(back, r.nowNS)
		r.result.Rewrite = l.AppendOnly // otherwise the next start would set back later states as well
	}
	if r.result.Rewrite {
		r.result.TailCRC = 0 // the new file ends in a stamp
	}
	l.Store.DrainSettings(func(policy.Change) {}) // what was just read need not be written
	for _, setting := range before {
		if !r.settings[setting] {
			l.Store.NoteSetting(setting)
		}
	}
	for l.Store.Drain(func(memory.Change) {}) {
	}
	r.result.NotRead = r.NotRead(r.result.File)
	r.result.Keys = int64(l.Store.Len(r.nowNS))
	r.result.Took = time.Since(began)
	return r.result, nil
}

func (r *run) load() error {
	paths, appendOnly, err := r.files()
	for i, path := range paths {
		if err == nil {
			err = r.read(path, appendOnly, i == len(paths)-1)
		}
	}
	switch {
	case !r.AppendOnly:
	case !appendOnly: // from a snapshot
		r.result.Rewrite = len(paths) > 0
	// appended commands would belong to another file, or to that database
	case len(paths) != 1 || paths[0] != r.Paths.AppendOnly || r.db != 0:
		r.result.Rewrite = true
	}
	return err
}

// NotRead returns files that exist but are not read. last is the last one that is; "": none. celld ignores Redis's append-only file once
// there is its own, and a user might believe otherwise.
func (l *Loader) NotRead(last string) (paths []string) {
	inManifest := l.AppendOnly && last != l.Paths.AppendOnly
	for _, path := range []string{l.Paths.AppendOnly, l.Paths.Manifest, l.Paths.Snapshot} {
		if path != last && !(path == l.Paths.Manifest && inManifest) && l.Dir.Has(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// OthersText lists what the files held that is no limit: "3 hash, 1 string". "" if there was nothing.
func (l Result) OthersText() string {
	var parts []string
	for kind, n := range l.Others {
		parts = append(parts, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
