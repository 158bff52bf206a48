package persistence

import (
	"errors"
	"time"
)

// watchEvery is how often the files are checked. With ticks of 100 ms, a change by another process is noticed within a second.
// A check takes some six system calls; no decision waits for them.
const watchEvery = 900 * time.Millisecond

// misplaced says that another process has removed or changed the files.
type misplaced struct {
	why        error
	repairable bool // a rewrite repairs it: the directory exists, and this process has locked it
}

var errMoved = errors.New("the append-only file was removed or replaced")

// watch checks that the files are still in place.
//
// It does not create a missing directory: if a volume was unmounted, its data would go to the disk below.
//
// It returns false while the append-only file is being written to, unless it may wait for that.
func (d *Disk) watch(wait bool) bool {
	if !d.dir.Claimed() {
		return true
	}
	if l := d.aof; l != nil && l.active.Load() {
		if wait {
			l.mu.Lock()
		} else if !l.mu.TryLock() {
			return false
		}
		defer l.mu.Unlock()
	}
	err := d.Claim()
	repairable := err == nil
	if repairable {
		d.watchSnapshot()
	}
	if l := d.aof; err == nil && l != nil && l.active.Load() {
		err = l.inspect()
	}
	if err == nil {
		d.noteMisplaced(nil)
	} else {
		d.noteMisplaced(&misplaced{err, repairable})
	}
	return true
}

// noteMisplaced remembers what watch found, and logs it when it changes. The append-only file, if there is one, is locked.
func (d *Disk) noteMisplaced(a *misplaced) {
	was := d.misplaced.Swap(a)
	if a != was {
		d.tellRefusal()
	}
	switch {
	case a == nil && was != nil:
		d.log.Info("the files in the directory of the data are in order again", "dir", d.dir.Abs())
	case a != nil && (was == nil || was.why.Error() != a.why.Error()):
		d.log.Error("somebody else has changed the files in the directory of the data", "dir", d.dir.Abs(), "error", a.why)
	}
}

// inspect returns an error if another process has changed the file. The log is locked.
func (l *appendLog) inspect() error {
	if err := l.checkSize(); err != nil {
		return err
	}
	if l.resized > 0 {
		return errResized
	}
	same, err := l.disk.dir.FS.Names(l.disk.paths.AppendOnly, l.file)
	if err == nil && !same {
		err = errMoved
	}
	return err
}

// watchSnapshot notices that the snapshot was removed, so that a new one is taken even if nothing changes.
func (d *Disk) watchSnapshot() {
	if len(d.o.SavePoints()) == 0 || d.SnapshotThere() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshot.known && !d.snapshot.gone {
		d.snapshot.gone = true
		d.log.Error("somebody else has removed the snapshot; another is taken", "file", d.paths.Snapshot)
	}
}

// SnapshotThere reports whether the snapshot file exists, whoever wrote it. It returns true if that cannot be known.
func (d *Disk) SnapshotThere() bool { return d.dir.Has(d.paths.Snapshot) }
