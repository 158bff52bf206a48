package persistence

import (
	"errors"
	"io/fs"
	"time"
)

// watchEvery is how often the files are looked at: with ticks of 100 ms, what somebody else does to them is noticed within a
// second. It takes some six system calls, and none of them for a decision.
const watchEvery = 900 * time.Millisecond

// astray is that somebody else has removed or changed what was written.
type astray struct {
	why      error
	mendable bool // by a rewrite: the directory is there and this process's
}

var (
	errMoved   = errors.New("the append-only file was removed or replaced")
	errResized = errors.New("the append-only file was truncated, or something else was written to it")
)

// watch looks whether what was written is still in its place.
//
// It does not make a directory anew: where a volume was unmounted, its data would go to the disk below.
func (d *Disk) watch() {
	if !d.lock.taken() {
		return
	}
	err := d.Claim()
	mendable := err == nil
	if mendable {
		d.watchSnapshot()
	}
	if l := d.aof; l != nil && l.active.Load() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil {
			err = l.inspect()
		}
	}
	if err == nil {
		d.noteAstray(nil)
		return
	}
	d.noteAstray(&astray{err, mendable})
}

// noteAstray keeps what watch found, and tells the log when that changes. Where there is an append-only file, it is locked.
func (d *Disk) noteAstray(a *astray) {
	was := d.astray.Swap(a)
	if a != was {
		d.tellRefusal()
	}
	switch {
	case a == nil && was != nil:
		d.log.Info("the files in the directory of the data are in order again", "dir", d.absDir())
	case a != nil && (was == nil || was.why.Error() != a.why.Error()):
		d.log.Error("somebody else has changed the files in the directory of the data", "dir", d.absDir(), "error", a.why)
	}
}

// inspect says what somebody else has done to the file. The log is locked.
func (l *appendLog) inspect() error {
	if err := l.checkSize(); err != nil {
		return err
	}
	if l.resized > 0 {
		return errResized
	}
	same, err := l.disk.files.Names(l.disk.aofPath(), l.file)
	if err == nil && !same {
		err = errMoved
	}
	return err
}

// checkSize returns an error where the file has another size than what was written to it, and goes on from there. The log is
// locked.
func (l *appendLog) checkSize() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if size, want := info.Size(), l.size.Load(); size < want || size > want && !l.torn {
		l.size.Store(size)
		l.torn = false
		l.resized++
		return errResized
	}
	return nil
}

// cut removes what stands behind size. It makes no file longer: zeros would stand where somebody else has removed something.
func (l *appendLog) cut() error {
	info, err := l.file.Stat()
	if err == nil && info.Size() < l.size.Load() {
		err = errResized
	}
	if err != nil {
		return err
	}
	return l.file.Truncate(l.size.Load())
}

// watchSnapshot notices that the snapshot was removed, as another is due only when something changes.
func (d *Disk) watchSnapshot() {
	if len(d.o.SavePoints()) == 0 || d.SnapshotThere() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshot.known && !d.snapshot.gone {
		d.snapshot.gone = true
		d.log.Error("somebody else has removed the snapshot; another is taken", "file", d.rdbPath())
	}
}

// SnapshotThere says whether there is a snapshot, whoever took it.
func (d *Disk) SnapshotThere() bool {
	f, err := d.files.Open(d.rdbPath())
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.Close()
	return true
}
